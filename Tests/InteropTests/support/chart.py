"""The chart in Helm/, rendered by Helm's own library, and what Kubernetes would make of it for a pod."""
import re

import yaml
from helm_python import Chart

from .server import ROOT

CHART = ROOT / "Helm/martlet"
#: What every release needs.
KEYS = {"keys": {"existingSecret": "martlet-keys"}}
#: A TURN server of the chart's own.
COTURN = {"coturn": {"enabled": True, "host": "turn.example.org", "existingSecret": "turn", "allowedPeers": ["192.0.2.1-192.0.2.9", "2001:db8::7"]}}
#: What the Secrets that the tests name hold.
SECRETS = {"martlet-keys": {"MARTLET_KEYS_APP": "0123456789abcdef0123456789abcdef"}, "more": {"MARTLET_LOG_ADDRESSES": "true"},
           "turn": {"secret": "north-south-east-west"}}


def render(values):
    """Every object of a release."""
    with Chart.load(str(CHART)) as chart:
        files = chart.render({**KEYS, **values}, name="rel", namespace="rooms", is_install=True)
    objects = [one for path, text in files.items() if path.endswith(".yaml") for one in yaml.safe_load_all(text) if one]
    assert len({(one["kind"], one["metadata"]["name"]) for one in objects}) == len(objects), "each object once"
    return objects


def of(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def pods(objects):
    return [one["spec"]["template"]["spec"] for one in of(objects, "StatefulSet") + of(objects, "Deployment")] + [one["spec"] for one in of(objects, "Pod")]


def server(objects):
    """The pods that serve, without what surrounds them."""
    return of(objects, "StatefulSet")[0]["spec"]["template"]["spec"]


def files(objects):
    """The server's settings and the pods' start script."""
    data = next(one for one in of(objects, "ConfigMap") if "start.sh" in one["data"])["data"]
    return data["martlet.yaml"], data["start.sh"]


def environment(container, secrets):
    """A container's environment as Kubernetes makes it: secrets by reference, $(NAME) expanded. Of the pod's fields there is its node's address."""
    result = {}
    for source in container.get("envFrom", []):
        result.update(secrets[source["secretRef"]["name"]])
    for entry in container.get("env", []):
        if "value" in entry:
            result[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda name: result[name[1]], entry["value"])
        elif "secretKeyRef" in entry["valueFrom"]:
            reference = entry["valueFrom"]["secretKeyRef"]
            result[entry["name"]] = secrets[reference["name"]][reference["key"]]
        else:
            result[entry["name"]] = "127.0.0.1"
    return result
