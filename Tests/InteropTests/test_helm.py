"""The chart in Helm/: Helm's own library renders it, Kubernetes' schemas judge what comes out, and the server reads its configuration."""
import json
import os
import re
import subprocess

import helm_python
import kubernetes_validate
import pytest
import yaml
from helm_python import Chart

from support.server import BINARY, ROOT

CHART = ROOT / "Helm/martlet"
KUBERNETES = "1.31.0"
KEYS = {"keys": {"existingSecret": "martlet-keys"}}
INGRESS = {"http": {"ingress": {"enabled": True, "host": "rooms.example.org", "tlsSecret": "tls", "perPod": True}}}
MONITORING = {"monitoring": {"serviceMonitor": {"enabled": True}, "rules": {"enabled": True, "labels": {"release": "prometheus"}}, "dashboard": {"enabled": True}},
              "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]}}

#: What operators set, each together with the keys that every release needs.
MATRIX = {
    "defaults": {},
    "three pods": {"replicas": 3, "media": {"workers": 4, "nodePort": {"first": 31000}}},
    "load balancers": {"replicas": 2, "media": {"exposure": "loadBalancer", "loadBalancer": {"addresses": ["203.0.113.1", "2001:db8::2"], "annotations": {"a": "b"}}}},
    "host network": {"media": {"exposure": "hostNetwork"}, "config": {"media": {"announced_addresses": ["203.0.113.9"]}}},
    "ingress": {"replicas": 2, **INGRESS},
    "TLS in the pod": {"tls": {"existingSecret": "tls"}},
    "monitoring": MONITORING,
    "autoscaling": {"replicas": 2, "autoscaling": {"enabled": True, "maxReplicas": 5}},
    "a volume": {"persistence": {"enabled": True, "storageClass": "fast", "size": "10Gi"}},
    "everything": {"replicas": 2, "autoscaling": {"enabled": True}, "persistence": {"enabled": True}, "environmentSecret": "more", "imagePullSecrets": [{"name": "r"}],
                   "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "nodeSelector": {"e": "f"}, "tolerations": [{"operator": "Exists"}],
                   "affinity": {"nodeAffinity": {}}, "config": {"rooms": {"max_participants": 50}, "log": {"format": "json"}}, **INGRESS, **MONITORING},
}


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
    return [one["spec"]["template"]["spec"] for one in of(objects, "StatefulSet")] + [one["spec"] for one in of(objects, "Pod")]


@pytest.mark.parametrize("name", MATRIX)
def test_K5_what_the_chart_renders_passes_lint_and_the_schemas_of_Kubernetes(name):
    values = {**KEYS, **MATRIX[name]}
    found = helm_python.lint(str(CHART), values, strict=True, kube_version=f"v{KUBERNETES}")
    # Severity 1 is advice, such as that an icon would be nice.
    assert [message for message in found["messages"] if message["severity"] > 1] == []
    objects = render(MATRIX[name])
    for one in objects:
        # Objects of the Prometheus operator have schemas of their own, which are not here.
        if one["apiVersion"].startswith("monitoring.coreos.com"):
            assert one["spec"]
        else:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)
    kinds = {one["kind"] for one in objects}
    assert {"StatefulSet", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"} <= kinds


@pytest.mark.parametrize("name", MATRIX)
def test_K5_pods_have_no_privileges_and_only_the_host_network_that_was_asked_for(name):
    for pod in pods(render(MATRIX[name])):
        assert pod.get("hostNetwork", False) == (name == "host network" and len(pod["containers"][0].get("ports", [])) > 0)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True and context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert not any("hostPort" in port for port in container.get("ports", []))
            assert not any("SECRET" in str(entry).upper() and "value" in entry for entry in container.get("env", []))


def test_K5_every_pod_has_UDP_ports_of_its_own_on_a_node_and_announces_them(tmp_path):
    """The ports of the Services, and the address that each pod's start script gives to the server, run here with a stand-in for the server."""
    objects = render(MATRIX["three pods"])
    services = [one for one in of(objects, "Service") if "-media-" in one["metadata"]["name"]]
    ports = [[port["nodePort"] for port in one["spec"]["ports"]] for one in services]
    assert ports == [[31000, 31001, 31002, 31003], [31004, 31005, 31006, 31007], [31008, 31009, 31010, 31011]]
    assert all(one["spec"]["externalTrafficPolicy"] == "Local" for one in services)
    script = next(one for one in of(objects, "ConfigMap") if "start.sh" in one["data"])["data"]["start.sh"]
    (tmp_path / "martlet").write_text('#!/bin/sh\necho "$MARTLET_MEDIA_ANNOUNCED_ADDRESSES $*"; env | grep -c MARTLET_POD || true\n')
    (tmp_path / "martlet").chmod(0o755)
    (tmp_path / "start.sh").write_text(script)

    def announced(pod, address):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOSTNAME": pod, "MARTLET_POD_ADDRESS": address}
        return subprocess.run(["/bin/sh", tmp_path / "start.sh"], env=environment, capture_output=True, text=True, check=True).stdout.split("\n")[:2]

    serve = "serve --config /etc/martlet/martlet.yaml"
    assert announced("rel-martlet-0", "192.0.2.7") == [f"192.0.2.7:31000 {serve}", "0"]
    assert announced("rel-martlet-2", "192.0.2.8") == [f"192.0.2.8:31008 {serve}", "0"]
    assert announced("rel-martlet-1", "2001:db8::7") == [f"[2001:db8::7]:31004 {serve}", "0"]
    objects = render(MATRIX["load balancers"])
    script = next(one for one in of(objects, "ConfigMap") if "start.sh" in one["data"])["data"]["start.sh"]
    (tmp_path / "start.sh").write_text(script)
    assert announced("rel-martlet-0", "")[0] == f"203.0.113.1:7900 {serve}"
    assert announced("rel-martlet-1", "")[0] == f"[2001:db8::2]:7900 {serve}"


@pytest.mark.parametrize("name", [name for name in MATRIX if name != "TLS in the pod"])
def test_K5_the_server_accepts_the_configuration_and_the_pod_outlives_its_drain(name, tmp_path):
    objects = render(MATRIX[name])
    text = next(one for one in of(objects, "ConfigMap") if "martlet.yaml" in one["data"])["data"]["martlet.yaml"]
    config = yaml.safe_load(text)
    assert config["trusted_proxy"] is True and config["private"]["bind"] == "0.0.0.0"
    # What this machine need not have: the ports free, the folder there.
    config["http"]["port"] = config["private"]["port"] = config["media"]["udp_port"] = 0
    config["storage"]["path"] = str(tmp_path / "martlet.db")
    (tmp_path / "martlet.yaml").write_text(yaml.safe_dump(config))
    environment = {**os.environ, "MARTLET_KEYS_APP": "0123456789abcdef0123456789abcdef"}
    checked = subprocess.run([BINARY, "check-config", tmp_path / "martlet.yaml"], env=environment, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0, checked.stderr
    for one in of(objects, "StatefulSet"):
        assert one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= config["sessions"]["drain"] + 10


@pytest.mark.parametrize("values, words", [
    ({"replica": 2}, "replica"),
    ({"replicas": 0}, "replicas"),
    ({"media": {"exposure": "carrierPigeon"}}, "exposure"),
    ({"keys": {"existingSecret": ""}}, "MARTLET_KEYS_APP"),
    ({"replicas": 2, "media": {"exposure": "loadBalancer", "loadBalancer": {"addresses": ["203.0.113.1"]}}}, "fewer addresses"),
    ({"http": {"ingress": {"enabled": True}}}, "http.ingress.host is missing"),
])
def test_K5_values_that_cannot_work_are_refused_with_their_name(values, words):
    with pytest.raises(helm_python.HelmError) as refused, Chart.load(str(CHART)) as chart:
        merged = {**KEYS, **values}
        chart.validate_schema(merged)
        chart.render(merged, name="rel", namespace="rooms", is_install=True)
    assert words in str(refused.value)


def test_K5_the_readme_names_every_value_with_its_default():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    def leaves(schema, value, path=()):
        for key, part in schema["properties"].items():
            if path or key != "global":
                yield from leaves(part, value[key], (*path, key)) if "properties" in part else [(".".join((*path, key)), value[key])]

    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \| .+ \|$", (CHART / "README.md").read_text(), re.MULTILINE))
    wanted = {path: "" if value in ("", {}, []) else f"`{value if isinstance(value, str) else json.dumps(value)}`" for path, value in leaves(schema, values)}
    assert rows == wanted
