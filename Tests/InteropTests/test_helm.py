"""The chart in Helm/: Helm's own library renders it, Kubernetes' schemas judge what comes out, and the server reads its configuration."""
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

import helm_python
import kubernetes_validate
import pytest
import yaml
from helm_python import Chart

from support.chart import CHART, COTURN, KEYS, SECRETS, environment, files, of, pods, render, server
from support.server import BINARY, ROOT, free_ports
from support.waiting import PATIENCE_S

#: The oldest version that the chart allows, and the newest whose schemas are here.
KUBERNETES = ["1.27.0", "1.31.0", "1.37.0"]
INGRESS = {"http": {"ingress": {"enabled": True, "host": "rooms.example.org", "tlsSecret": "tls", "perPod": True}}}
MONITORING = {"monitoring": {"serviceMonitor": {"enabled": True}, "rules": {"enabled": True, "labels": {"release": "prometheus"}}, "dashboard": {"enabled": True}},
              "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]}}

#: What operators set, each together with the keys that every release needs.
MATRIX = {
    "defaults": {},
    "three pods": {"replicas": 3, "media": {"workers": 4, "nodePort": {"first": 31000}}},
    "load balancers": {"replicas": 2, "media": {"exposure": "loadBalancer", "loadBalancer": {"addresses": ["203.0.113.1", "2001:db8::2"], "annotations": {"a": "b"}}}},
    "host network": {"media": {"exposure": "hostNetwork", "announcedAddresses": ["203.0.113.9"]}},
    "ingress": {"replicas": 2, **INGRESS},
    "host ports": {"replicas": 2, "media": {"exposure": "hostPort", "workers": 3, "hostPort": {"first": 40000}}},
    "host port 443": {"media": {"exposure": "hostPort", "sharedTcpPort": 443}},
    "load balancers with 443": {"media": {"exposure": "loadBalancer", "loadBalancer": {"addresses": ["203.0.113.1"]}, "sharedTcpPort": 443}},
    "host network with a shared port": {"media": {"exposure": "hostNetwork", "sharedTcpPort": 8443}},
    "discovered addresses": {"media": {"exposure": "hostNetwork", "announcedAddresses": ["discover"]}, "config": {"media": {"stun_server": "stun.example.org"}}},
    "fixed addresses": {"media": {"announcedAddresses": ["203.0.113.5", "2001:db8::5"]}},
    "TLS in the pod": {"tls": {"existingSecret": "tls"}},
    "TLS behind an ingress": {"tls": {"existingSecret": "tls"}, "http": {"ingress": {
        **INGRESS["http"]["ingress"], "annotations": {"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}}}},
    "TLS with a name": {"tls": {"existingSecret": "tls", "host": "rooms.example.org"}},
    "no proxy": {"config": {"insecure": True}, "image": {"digest": "sha256:" + "0" * 64}},
    "coturn": {**COTURN, "config": {"ice_servers": ["stun:stun.example.org:3478"]}},
    "coturn with TLS": {"coturn": {**COTURN["coturn"], "tlsSecret": "turn-tls", "replicas": 2, "service": {"type": "ClusterIP", "annotations": {"a": "b"}}}},
    "monitoring": MONITORING,
    "autoscaling": {"replicas": 2, "autoscaling": {"enabled": True, "maxReplicas": 5}},
    "ports set aside": {"replicas": 3, "media": {"nodePort": {"portsPerPod": 8}}},
    "a private API": {"replicas": 2, "config": {"http": {"control_api": "private"}}},
    "uploads": {"persistence": {"enabled": True, "size": "20Gi"}, "recording": {"uploadSecret": "storage"}, "config": {"recording": {
        "directory": "/var/lib/martlet/recordings", "upload_endpoint": "https://s3.example.org", "upload_bucket": "calls"}}},
    "a volume for recordings": {"extraVolumes": [{"name": "recordings", "persistentVolumeClaim": {"claimName": "recordings"}}],
                                "extraVolumeMounts": [{"name": "recordings", "mountPath": "/recordings"}], "config": {"recording": {"directory": "/recordings/calls"}}},
    "a volume": {"persistence": {"enabled": True, "storageClass": "fast", "size": "10Gi"}},
    "everything": {"replicas": 2, "autoscaling": {"enabled": True}, "persistence": {"enabled": True}, "environmentSecret": "more", "imagePullSecrets": [{"name": "r"}],
                   "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "nodeSelector": {"e": "f"}, "tolerations": [{"operator": "Exists"}],
                   "affinity": {"nodeAffinity": {}}, "config": {"rooms": {"max_participants": 50}, "log": {"format": "json"}}, **INGRESS, **MONITORING},
}


def labels_match(selector, labels):
    return selector.items() <= labels.items()


@pytest.mark.parametrize("name", MATRIX)
def test_K5_what_the_chart_renders_passes_lint_and_the_schemas_of_Kubernetes(name):
    values = {**KEYS, **MATRIX[name]}
    for version in KUBERNETES:
        found = helm_python.lint(str(CHART), values, strict=True, kube_version=f"v{version}")
        # Severity 1 is advice, such as that an icon would be nice.
        assert [message for message in found["messages"] if message["severity"] > 1] == []
    objects = render(MATRIX[name])
    for one in objects:
        # Objects of the Prometheus operator have schemas of their own, which are not here.
        if one["apiVersion"].startswith("monitoring.coreos.com"):
            assert one["spec"]
        else:
            for version in KUBERNETES:
                kubernetes_validate.validate(one, version, strict=True)
    kinds = {one["kind"] for one in objects}
    assert {"StatefulSet", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"} <= kinds


@pytest.mark.parametrize("name", MATRIX)
def test_K5_pods_have_no_privileges_and_only_the_host_network_that_was_asked_for(name):
    objects = render(MATRIX[name])
    for pod in pods(objects):
        serves = pod == server(objects)
        assert pod.get("hostNetwork", False) == (MATRIX[name].get("media", {}).get("exposure") == "hostNetwork" and serves)
        assert not pod.keys() & {"hostPID", "hostIPC"} and pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["enableServiceLinks"] is False, "a Service called martlet-http would be read as a setting"
        for volume in pod.get("volumes", []):
            assert volume.keys() - {"name"} <= {"configMap", "secret", "emptyDir"} or volume in MATRIX[name].get("extraVolumes", []), volume
        assert not pod.get("initContainers")
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True and context["allowPrivilegeEscalation"] is False
            assert not context.keys() & {"privileged", "runAsUser", "runAsNonRoot", "seccompProfile"}, "nothing takes back what the pod says"
            # coturn's image cannot be started without this one, which Kubernetes' restricted profile allows.
            added = {"add": ["NET_BIND_SERVICE"]} if container["name"] == "coturn" else {}
            assert context["capabilities"] == {"drop": ["ALL"], **added}
            assert name.startswith("host port") or not any("hostPort" in port for port in container.get("ports", []))
            for entry in container.get("env", []):
                assert "value" not in entry or entry["name"] == "MARTLET_ICE_SERVERS" and '"secret":"$(TURN_SECRET)"' in entry["value"], entry
    assert not of(objects, "Secret"), "secrets come by reference"


@pytest.mark.parametrize("name", MATRIX)
def test_K5_the_probes_ask_for_different_things_and_each_policy_and_service_chooses_its_own_pods(name):
    objects = render(MATRIX[name])
    pod = server(objects)
    container = pod["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    paths = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: one["path"] for kind, one in paths.items()} == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert all(ports[one["port"]] == 7881 for one in paths.values())
    assert container["livenessProbe"]["timeoutSeconds"] >= 5, "a busy machine has time to answer"
    kinds = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in of(objects, "StatefulSet") + of(objects, "Deployment")}
    for one in of(objects, "Service") + of(objects, "PodDisruptionBudget") + of(objects, "NetworkPolicy"):
        spec = one["spec"]
        selector = spec["podSelector"]["matchLabels"] if "podSelector" in spec else spec["selector"].get("matchLabels", spec["selector"])
        selector = {key: value for key, value in selector.items() if key != "statefulset.kubernetes.io/pod-name"}
        chosen = [workload for workload, labels in kinds.items() if labels_match(selector, labels)]
        assert chosen == ["rel-martlet-coturn" if "coturn" in one["metadata"]["name"] else "rel-martlet"], one["metadata"]["name"]
    spread = pod["topologySpreadConstraints"][0]
    assert labels_match(spread["labelSelector"]["matchLabels"], kinds["rel-martlet"])
    for policy in of(objects, "NetworkPolicy"):
        for rule in policy["spec"]["ingress"]:
            # From anywhere: HTTP, media and TURN. Metrics only from where it was said.
            assert "from" in rule or "private" not in [port["port"] for port in rule["ports"]]


@pytest.mark.parametrize("name", MATRIX)
def test_K5_a_pod_that_drains_stays_in_the_common_service_only_where_there_can_be_no_other(name):
    values = MATRIX[name]
    scaling = values.get("autoscaling", {"enabled": False})
    several = values.get("replicas", 1) > 1 or scaling["enabled"] and scaling.get("maxReplicas", 4) > 1
    service = next(one for one in of(render(values), "Service") if one["metadata"]["name"] == "rel-martlet")
    assert service["spec"].get("publishNotReadyAddresses", False) == (not several)


def test_K5_every_pod_has_UDP_ports_of_its_own_on_a_node_and_announces_them(tmp_path):
    """The ports of the Services, and the address that each pod's start script gives to the server, run here with a stand-in for the server."""
    objects = render(MATRIX["three pods"])
    services = [one for one in of(objects, "Service") if "-media-" in one["metadata"]["name"]]
    ports = [[port["nodePort"] for port in one["spec"]["ports"] if port.get("protocol") == "UDP"] for one in services]
    assert ports == [[port["nodePort"] for port in one["spec"]["ports"] if "protocol" not in port] for one in services], "TCP has the same numbers"
    assert ports == [[31000, 31001, 31002, 31003], [31004, 31005, 31006, 31007], [31008, 31009, 31010, 31011]]
    assert all(one["spec"]["externalTrafficPolicy"] == "Local" and one["spec"]["publishNotReadyAddresses"] for one in services)
    (tmp_path / "martlet").write_text('#!/bin/sh\necho "${MARTLET_MEDIA_ANNOUNCED_ADDRESSES-none} $*"\n')
    (tmp_path / "martlet").chmod(0o755)

    def announced(objects, pod, address):
        (tmp_path / "start.sh").write_text(files(objects)[1])
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOSTNAME": pod, "POD_ADDRESS": address}
        told, *command = subprocess.run(["/bin/sh", tmp_path / "start.sh"], env=environment, capture_output=True, text=True, check=True).stdout.split()
        assert command == ["serve", "--config", "/etc/martlet/martlet.yaml"]
        return told

    apart = render(MATRIX["ports set aside"])
    assert [[port["nodePort"] for port in one["spec"]["ports"] if "protocol" not in port] for one in of(apart, "Service") if "-media-" in one["metadata"]["name"]] == [
        [30900, 30901], [30908, 30909], [30916, 30917]]
    assert announced(apart, "rel-martlet-2", "192.0.2.8") == "192.0.2.8:30916"
    # Kubernetes refuses one node port number for two protocols under different `port`s (kubernetes issue 135439).
    assert all({port["port"] for port in one["spec"]["ports"] if port.get("protocol") == "UDP"} == {port["port"] for port in one["spec"]["ports"] if "protocol" not in port}
               for one in services)
    assert all(one["metadata"]["labels"]["app.kubernetes.io/component"] == "media" for one in services)
    assert announced(objects, "rel-martlet-0", "192.0.2.7") == "192.0.2.7:31000"
    assert announced(objects, "rel-martlet-2", "192.0.2.8") == "192.0.2.8:31008"
    assert announced(objects, "rel-martlet-1", "2001:db8::7") == "[2001:db8::7]:31004"
    balanced = render(MATRIX["load balancers"])
    assert announced(balanced, "rel-martlet-0", "") == "203.0.113.1:7900"
    assert announced(balanced, "rel-martlet-1", "") == "[2001:db8::2]:7900"
    fixed = render(MATRIX["fixed addresses"])
    assert announced(fixed, "rel-martlet-0", "10.0.0.1") == "203.0.113.5:30900,[2001:db8::5]:30900"
    # The same addresses for all pods may be those of other nodes.
    assert [one["spec"]["externalTrafficPolicy"] for one in of(fixed, "Service") if "-media-" in one["metadata"]["name"]] == ["Cluster"]
    assert announced(render({"media": {"exposure": "hostNetwork"}}), "node-7", "") == "none"
    assert announced(render(MATRIX["host network"]), "node-7", "") == "203.0.113.9:7900"
    assert announced(render(MATRIX["discovered addresses"]), "node-7", "") == "discover"


def test_K5_host_ports_are_few_distinct_and_announced_with_the_address_of_the_node():
    """Kubernetes puts no second pod with the same host ports on a node; two releases with other ports share it."""
    def udp_only(objects):
        found = [port for port in server(objects)["containers"][0]["ports"] if "hostPort" in port]
        assert all(port["name"].startswith("media-") for port in found), "HTTP and health stay in the cluster"
        ports = {protocol: [port["hostPort"] for port in found if port.get("protocol", "TCP") == protocol] for protocol in ("UDP", "TCP")}
        assert ports["UDP"] == ports["TCP"], "who cannot send UDP finds the same numbers over TCP"
        return ports["UDP"]

    first = render(MATRIX["host ports"])
    second = render({"media": {"exposure": "hostPort", "workers": 3, "hostPort": {"first": 40003}}})
    assert udp_only(first) == [40000, 40001, 40002] and udp_only(second) == [40003, 40004, 40005]
    assert server(first)["containers"][0]["env"] == [{"name": "POD_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}]
    assert "announce 40000 \"$POD_ADDRESS\"" in files(first)[1] and "announce 40003 \"$POD_ADDRESS\"" in files(second)[1]
    assert not [one for one in of(first, "Service") if "-media-" in one["metadata"]["name"]]


@pytest.mark.parametrize("name, listens, node, balancer", [
    ("host port 443", 7899, 443, None), ("load balancers with 443", 7899, None, 443), ("host network with a shared port", 8443, None, None)])
def test_K5_F9_a_shared_TCP_port_is_announced_opened_and_permitted(name, listens, node, balancer):
    objects = render(MATRIX[name])
    shared = MATRIX[name]["media"]["sharedTcpPort"]
    media = yaml.safe_load(files(objects)[0])["media"]
    assert (media["tcp_port"], media["announced_tcp_port"]) == (listens, shared)
    port = next(one for one in server(objects)["containers"][0]["ports"] if one["name"] == "media-shared")
    assert (port["containerPort"], port.get("hostPort"), port.get("protocol", "TCP")) == (listens, node, "TCP")
    services = [port for one in of(objects, "Service") for port in one["spec"]["ports"] if port["name"] == "media-shared"]
    assert [(port["port"], port["targetPort"]) for port in services] == ([(balancer, "media-shared")] if balancer else [])
    assert {"port": "media-shared"} in of(objects, "NetworkPolicy")[0]["spec"]["ingress"][0]["ports"]
    assert "media-shared" not in str(render(MATRIX["host ports"])), "none unless it is asked for"


def test_K5_pods_restart_when_what_they_announce_changes_and_not_for_a_new_version_of_the_chart(tmp_path):
    def template(values, chart=CHART):
        with Chart.load(str(chart)) as loaded:
            objects = yaml.safe_load(loaded.render({**KEYS, **values}, name="rel", namespace="rooms")["martlet/templates/statefulset.yaml"])
        return objects["spec"]["template"]

    before = template({})
    for values in ({"media": {"nodePort": {"first": 31000}}}, {"media": {"announcedAddresses": ["203.0.113.5"]}}, {"config": {"log": {"level": "debug"}}}):
        assert template(values) != before, values
    assert template({"monitoring": {"dashboard": {"enabled": True}}}) == before
    shutil.copytree(CHART, tmp_path / "martlet")
    newer = tmp_path / "martlet/Chart.yaml"
    newer.write_text(newer.read_text().replace("\nversion: ", "\nversion: 9"))
    assert template({}, newer.parent) == before


@pytest.mark.parametrize("values, transport", [
    ({}, "UDP and TCP 30900 to 30901"), (MATRIX["ports set aside"], "UDP and TCP 30900 to 30917"), ({"config": {"media": {"tcp": False}}}, "UDP 30900 to 30901"), (MATRIX["load balancers"], "UDP from port 7900"),
    (MATRIX["host ports"], "UDP and TCP 40000 to 40002"), (MATRIX["host network"], "UDP and TCP 7900 to 7901")])
def test_K5_the_notes_name_the_ports_and_TCP_where_the_pods_have_it(values, transport):
    with Chart.load(str(CHART)) as chart:
        notes = chart.render({**KEYS, **values}, name="rel", namespace="rooms")["martlet/templates/NOTES.txt"]
    assert f"\nMedia: {transport}" in notes
    address = re.search(r"^Signalling: (.*)$", notes, re.M)[1]
    assert address == "Service rel-martlet, port 80"
    assert ("TCP" in transport) == any(port["name"].startswith("media-tcp-") for port in server(render(values))["containers"][0]["ports"])


@pytest.mark.parametrize("name", MATRIX)
def test_K5_the_server_accepts_the_configuration_and_the_pod_outlives_its_drain(name, tmp_path):
    objects = render(MATRIX[name])
    config = yaml.safe_load(files(objects)[0])
    assert ("tls" in config["http"], config.get("trusted_proxy", False), config.get("insecure", False)) == (
        name.startswith("TLS"), name != "no proxy" and not name.startswith("TLS"), name == "no proxy")
    # What this machine need not have: the ports free, the folders there.
    config["http"]["port"] = config["private"]["port"] = config["media"]["udp_port"] = 0
    config["storage"]["path"] = str(tmp_path / "martlet.db")
    if "tls" in config["http"]:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "tls.key", "-out", tmp_path / "tls.crt", "-days", "9",
                        "-subj", "/CN=rooms.example.org"], check=True, capture_output=True)
        config["http"]["tls"] = {kind: path.replace("/etc/martlet-tls", str(tmp_path)) for kind, path in config["http"]["tls"].items()}
    pod = server(objects)
    assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch", "a large folder of recordings is not walked through at each start"
    upload = config.get("recording")
    if upload:
        mounts = [one["mountPath"] for one in pod["containers"][0]["volumeMounts"] if not one.get("readOnly")]
        assert any(upload["directory"].startswith(f"{path}/") for path in mounts)
        upload["directory"] = str(tmp_path)
    if upload and "upload_credentials" in upload:
        mount, = (one for one in pod["containers"][0]["volumeMounts"] if upload["upload_credentials"] == f"{one['mountPath']}/keys")
        volume, = (one for one in pod["volumes"] if one["name"] == mount["name"])
        assert volume["secret"] == {"secretName": "storage", "defaultMode": 0o440}
        upload["upload_credentials"] = str(tmp_path / "keys")
        (tmp_path / "keys").touch(0o440)
        (tmp_path / "keys").write_text("access\nsecret\n")
    (tmp_path / "martlet.yaml").write_text(yaml.safe_dump(config))
    given = {**os.environ, **environment(pod["containers"][0], SECRETS)}
    checked = subprocess.run([BINARY, "check-config", tmp_path / "martlet.yaml"], env=given, capture_output=True, text=True, timeout=20)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr
    wait = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= wait + config["sessions"]["drain"] + 50


@pytest.mark.parametrize("values, pod, ports", [
    ({}, 0, [30900, 30901]), ({"replicas": 2, "media": {"workers": 1}, "config": {"rooms": {"max_participants": 50}}}, 1, [30901])])
def test_K5_a_pods_own_command_serves_answers_its_probes_and_the_tests_hook_and_ends_in_order(tmp_path, values, pod, ports):
    """What Kubernetes would run in the pod, run here: start script, environment, probes, `helm test`, SIGTERM."""
    objects = render(values)
    pods_of = [f"rel-martlet-{number}.rel-martlet-pods:7880" for number in range(values.get("replicas", 1))]
    container = server(objects)["containers"][0]
    text, script = files(objects)
    config = yaml.safe_load(text)
    http, private = free_ports(2)
    # The media port is the node's: what a Service would do between them is not there.
    config["http"]["port"], config["private"]["port"], config["media"]["udp_port"] = http, private, ports[0]
    config["storage"]["path"] = str(tmp_path / "martlet.db")
    (tmp_path / "martlet.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "start.sh").write_text(script.replace("/etc/martlet", str(tmp_path)))
    (tmp_path / "martlet").symlink_to(BINARY)
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOSTNAME": f"rel-martlet-{pod}", **environment(container, SECRETS)}
    assert container["command"] == ["/bin/sh", "/etc/martlet/start.sh"]

    def get(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{private}{path}", timeout=5) as reply:
                return reply.status, reply.read().decode()
        except OSError:
            return 0, ""

    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(["/bin/sh", tmp_path / "start.sh"], env=given, stderr=log)
    try:
        probes = [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")]
        end = time.monotonic() + PATIENCE_S
        while [get(path)[0] for path in probes] != [200] * 3:
            assert process.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
        scaler = of(render(MATRIX["autoscaling"]), "HorizontalPodAutoscaler")[0]["spec"]["metrics"][0]["pods"]["metric"]["name"]
        assert f"# TYPE {scaler} gauge\n" in get("/metrics")[1], "the autoscaler's metric is one that the server has"
        hook = of(objects, "Pod")[0]["spec"]["containers"][0]
        said = re.sub(r'"http://[^"]+"', f'"http://127.0.0.1:{http}"', hook["command"][-1])
        assert re.findall(r'martlet (\w+) --server "http://([^"]+)"', hook["command"][-1]) == [
            ("rooms", "rel-martlet:80"), *((verb, one) for one in pods_of for verb in ("rooms", "reach"))]
        environment_of_hook = {"PATH": given["PATH"], **environment(hook, SECRETS)}
        done = subprocess.run([*hook["command"][:-1], said], env=environment_of_hook, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0 and all(f"pod {number}" in done.stdout for number in range(len(pods_of))), done.stderr
        # The node ports of this pod, which are nobody's here but the server's; each pod's are asked, and here each pod is this one.
        reached = {f"{kind} {port}": len(re.findall(rf"^{kind} 127\.0\.0\.1:{port}  after ", done.stdout, re.M)) for kind in ("udp", "tcp") for port in ports}
        assert set(reached.values()) == {len(pods_of)}, done.stdout
        wrong = {**environment_of_hook, "MARTLET_KEYS_APP": "f" * 32}
        assert subprocess.run([*hook["command"][:-1], said], env=wrong, capture_output=True, timeout=20).returncode != 0, "another key is refused"
    finally:
        process.terminate()
        assert process.wait(15) == 0, (tmp_path / "log").read_text()


def test_K5_the_notes_name_the_scheme_of_the_ingress():
    for secret, scheme in (("tls", "https"), ("", "http")):
        ingress = {**INGRESS["http"]["ingress"], "tlsSecret": secret}
        with Chart.load(str(CHART)) as chart:
            notes = chart.render({**KEYS, "http": {"ingress": ingress}}, name="rel", namespace="rooms")["martlet/templates/NOTES.txt"]
        assert f"Signalling: {scheme}://rooms.example.org\n" in notes


def test_K5_with_a_private_control_API_the_tests_hook_calls_and_reaches_the_private_port_of_each_pod():
    for values in (MATRIX["a private API"], {**MATRIX["a private API"], "tls": {"existingSecret": "tls"}}):
        objects = render(values)
        hook, = of(objects, "Pod")
        calls = re.findall(r'martlet (\w+) --server "http://([^"]+)"', hook["spec"]["containers"][0]["command"][-1])
        assert calls == [("rooms", f"rel-martlet-{number}.rel-martlet-pods:7881") for number in range(2)]
        policy, = of(objects, "NetworkPolicy")
        private, = (rule for rule in policy["spec"]["ingress"] if rule["ports"] == [{"port": "private"}])
        assert [labels_match(one["podSelector"]["matchLabels"], hook["metadata"]["labels"]) for one in private["from"]] == [True]
    assert "podSelector" not in str(of(render({}), "NetworkPolicy")[0]["spec"]["ingress"])


def test_K5_the_number_of_pods_is_the_autoscalers_where_there_is_one():
    """Without a cluster there is nothing to look up, so the field is left out."""
    assert of(render({"replicas": 3}), "StatefulSet")[0]["spec"]["replicas"] == 3
    assert "replicas" not in of(render(MATRIX["autoscaling"]), "StatefulSet")[0]["spec"]


def test_K5_the_schema_has_every_setting_of_the_server_with_its_range_but_those_that_the_chart_sets():
    text = subprocess.run([BINARY, "help", "settings"], capture_output=True, text=True, check=True).stdout
    settings = {match[1]: match[2] for match in re.finditer(r"^  (\S+)(?:  \[.*\])?\n      .* \((.*?)\)$", text, re.MULTILINE)}
    own = {"http.bind", "http.port", "http.tls.certificate", "http.tls.key", "private.bind", "private.port", "media.bind", "media.udp_port", "media.tcp_port", "media.announced_tcp_port", "media.workers",
           "media.announced_addresses", "recording.upload_credentials", "sessions.drain", "storage.path", "trusted_proxy", "keys.NAME"}

    def leaves(schema, path=()):
        for key, part in schema["properties"].items():
            if "properties" in part:
                assert part["additionalProperties"] is False
                yield from leaves(part, (*path, key))
            else:
                yield ".".join((*path, key)), part

    known = dict(leaves(json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]))
    assert set(known) == set(settings) - own and own <= set(settings)
    for path, part in known.items():
        if bounds := re.search(r"(?:^|, )(\d+) to (\d+)$", settings[path]):
            assert (part["type"], part["minimum"], part["maximum"]) == ("integer", *map(int, bounds.groups())), path
        words = part.get("enum") or part.get("items", {}).get("enum")
        assert words is None or ", ".join(words) == settings[path], path
        assert (part.get("type") == "boolean") == (settings[path] == "true or false"), path


@pytest.mark.parametrize("values, words", [
    ({"replica": 2}, "replica"),
    ({"replicas": 0}, "replicas"),
    ({"media": {"exposure": "carrierPigeon"}}, "exposure"),
    ({"keys": {"existingSecret": ""}}, "MARTLET_KEYS_APP"),
    ({"replicas": 2, "media": {"exposure": "loadBalancer", "loadBalancer": {"addresses": ["203.0.113.1"]}}}, "fewer addresses"),
    ({"http": {"ingress": {"enabled": True}}}, "http.ingress.host is missing"),
    ({"tls": {"existingSecret": "tls"}, **INGRESS}, "without annotations an Ingress sends the pods plain HTTP"),
    ({"tls": {"existingSecret": "tls"}, "http": {"ingress": {"enabled": True, "host": "rooms.example.org"}}}, "clear tls.existingSecret"),
    ({"config": {"rooms": {"max_particpants": 5}}}, "max_particpants"),
    ({"config": {"rooms": {"max_participants": 0}}}, "/config/rooms/max_participants"),
    ({"config": {"http": {"port": 80}}}, "'port' not allowed"),
    ({"config": {"keys": {"app": "0" * 64}}}, "'keys' not allowed"),
    ({"config": {"ice_servers": ["turn:turn.example.org"]}}, "/config/ice_servers/0"),
    ({"image": {"digest": "latest"}}, "/image/digest"),
    ({"media": {"announcedAddresses": ["$(reboot)"]}}, "/media/announcedAddresses/0"),
    ({"media": {"announcedAddresses": ["192.0.2.1"], "exposure": "loadBalancer", "loadBalancer": {"addresses": ["192.0.2.1"]}}}, "media.announcedAddresses"),
    ({"replicas": 100, "media": {"workers": 4, "nodePort": {"first": 65500}}}, "media.nodePort: 100 pods with 4 workers need ports up to 65899"),
    ({"media": {"exposure": "hostPort", "hostPort": {"first": 65535}}}, "media.hostPort"),
    ({"media": {"exposure": "loadBalancer", "loadBalancer": {"addresses": ["192.0.2.1"], "firstPort": 65535}}}, "media.loadBalancer"),
    ({"media": {"sharedTcpPort": 443}}, "media.sharedTcpPort has no meaning with node ports"),
    ({"media": {"exposure": "hostNetwork", "sharedTcpPort": 443}}, "cannot listen on port 443"),
    ({"media": {"announcedAddresses": ["discover"]}}, "needs media.exposure hostNetwork"),
    ({"media": {"exposure": "hostNetwork", "announcedAddresses": ["discover"]}}, "config.media.stun_server is missing"),
    ({"media": {"workers": 4, "nodePort": {"portsPerPod": 2}}}, "media.nodePort.portsPerPod is 2, but a pod has 4 media threads"),
    ({"monitoring": {"serviceMonitor": {"enabled": True}}}, "networkPolicy.metricsFrom is missing"),
    ({"config": {"recording": {"directory": "/var/lib/martlet/recordings"}}}, "without persistence.enabled"),
    ({"config": {"recording": {"directory": "/var/lib/martlet/recordings"}}, "persistence": {"enabled": True}}, "a volume of 1Gi has no room for recordings"),
    ({"config": {"recording": {"directory": "/var/lib/martlet", "reserve": 30000}}, "persistence": {"enabled": True, "size": "20Gi"}}, "leave 30000 MB of it free"),
    ({"config": {"recording": {"directory": "/recordings"}}, "persistence": {"enabled": True, "size": "20Gi"}}, "the server cannot write to /recordings"),
    ({"config": {"recording": {"directory": "/recordings"}}, "extraVolumes": [{"name": "r", "emptyDir": {}}], "extraVolumeMounts": [{"name": "r", "mountPath": "/record"}]},
     "the server cannot write to /recordings"),
    ({"extraVolumeMounts": [{"name": "r"}]}, "mountPath"),
    ({"coturn": {**COTURN["coturn"], "host": ""}}, "coturn.host is missing"),
    ({"coturn": {**COTURN["coturn"], "existingSecret": ""}}, "coturn.existingSecret is missing"),
    ({"coturn": {**COTURN["coturn"], "allowedPeers": []}}, "coturn.allowedPeers is missing"),
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
            if (*path, key) == ("global",):
                continue
            # The server's settings are described by the server.
            is_section = "properties" in part and (*path, key) != ("config",)
            yield from leaves(part, value[key], (*path, key)) if is_section else [(".".join((*path, key)), value[key])]

    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \| .+ \|$", (CHART / "README.md").read_text(), re.MULTILINE))
    wanted = {path: "" if value in ("", {}, []) else f"`{value if isinstance(value, str) else json.dumps(value)}`" for path, value in leaves(schema, values)}
    assert rows == wanted
