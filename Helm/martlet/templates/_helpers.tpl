{{- define "martlet.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "martlet.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "martlet.labels" -}}
{{ include "martlet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* A name of its own: Martlet's Services and policies must not choose coturn's pods. */ -}}
{{- define "martlet.coturnSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-coturn
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "martlet.coturnLabels" -}}
{{ include "martlet.coturnSelector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* As many pods as there can ever be: each has ports of its own. */ -}}
{{- define "martlet.maxPods" -}}
{{- if .Values.autoscaling.enabled }}{{ max (int .Values.replicas) (int .Values.autoscaling.maxReplicas) }}{{ else }}{{ int .Values.replicas }}{{ end -}}
{{- end -}}

{{- /* How far the node ports of one pod are from those of the next. */ -}}
{{- define "martlet.portsPerPod" -}}
{{- int (.Values.media.nodePort.portsPerPod | default .Values.media.workers) -}}
{{- end -}}

{{- /* Not empty where the control API is served on the private port alone. */ -}}
{{- define "martlet.privateAPI" -}}
{{- if eq (dig "http" "control_api" "public" .Values.config) "private" }}yes{{ end -}}
{{- end -}}

{{- /* Not empty where the server does pre-call checks, which `martlet reach` asks for. */ -}}
{{- define "martlet.checks" -}}
{{- if ne (int (dig "rooms" "max_checks" 20 .Values.config)) 0 }}yes{{ end -}}
{{- end -}}

{{- /* The server's image, by digest where one is given: a tag can move. */ -}}
{{- define "martlet.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- /* The server's settings: what people wrote, and what the chart decides, which the schema keeps out of what people write. "::" is every
       address of either family. */ -}}
{{- define "martlet.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $http := dict "bind" "::" "port" 7880 -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $http "tls" (dict "certificate" "/etc/martlet-tls/tls.crt" "key" "/etc/martlet-tls/tls.key") -}}
{{- else if not $config.insecure -}}
{{- $_ := set $config "trusted_proxy" true -}}
{{- end -}}
{{- $media := dict "udp_port" 7900 "workers" (int .Values.media.workers) "tcp" (ne (include "martlet.tcp" .) "") -}}
{{- if .Values.media.sharedTcpPort -}}
{{- $_ := set $media "tcp_port" (include "martlet.sharedPort" . | int) -}}
{{- $_ := set $media "announced_tcp_port" (int .Values.media.sharedTcpPort) -}}
{{- end -}}
{{- if .Values.recording.uploadSecret -}}
{{- $_ := set $config "recording" (set (dig "recording" (dict) $config) "upload_credentials" "/etc/martlet-upload/keys") -}}
{{- end -}}
{{- $chart := dict "http" $http "private" (dict "bind" "::" "port" 7881) "media" $media "sessions" (dict "drain" (int .Values.drainSeconds)) "storage" (dict "path" "/var/lib/martlet/martlet.db") -}}
{{- toYaml (mergeOverwrite $config $chart) -}}
{{- end -}}

{{- /* Not empty where media is accepted over TCP, too, on the numbers of the UDP ports. Not through load balancers: not every cloud lets one carry both. */ -}}
{{- define "martlet.tcp" -}}
{{- if and (ne (toString (dig "media" "tcp" true .Values.config)) "false") (ne .Values.media.exposure "loadBalancer") }}yes{{ end -}}
{{- end -}}

{{- /* Where the pod listens for it: a program without privileges gets no port below 1024, and with the host's network there is nothing that maps it. */ -}}
{{- define "martlet.sharedPort" -}}
{{- if eq .Values.media.exposure "hostNetwork" }}{{ int .Values.media.sharedTcpPort }}{{ else }}7899{{ end -}}
{{- end -}}

{{- /* What a pod runs: a pod knows its number and its node only when it starts. */ -}}
{{- define "martlet.start" -}}
{{- $media := .Values.media -}}
# Where clients find this pod's media ports: addresses of the node or load balancer, and ports that belong to this pod alone.
set -eu
announce() {
    port=$1 list=
    shift
    for address in "$@"; do
        case $address in *:*) address="[$address]" ;; esac
        list="$list${list:+,}$address:$port"
    done
    export MARTLET_MEDIA_ANNOUNCED_ADDRESSES="$list"
}
{{- $addresses := $media.announcedAddresses | default (list "$POD_ADDRESS") }}
{{- if eq $media.exposure "nodePort" }}
announce "$(({{ int $media.nodePort.first }} + ${HOSTNAME##*-} * {{ include "martlet.portsPerPod" . }}))"{{ range $addresses }} {{ . | quote }}{{ end }}
{{- else if eq $media.exposure "hostPort" }}
announce {{ int $media.hostPort.first }}{{ range $addresses }} {{ . | quote }}{{ end }}
{{- else if eq $media.exposure "loadBalancer" }}
set --{{ range $media.loadBalancer.addresses }} {{ . | quote }}{{ end }}
shift "${HOSTNAME##*-}"
announce {{ int $media.loadBalancer.firstPort }} "$1"
{{- else if has "discover" $media.announcedAddresses }}
export MARTLET_MEDIA_ANNOUNCED_ADDRESSES=discover
{{- else if $media.announcedAddresses }}
announce 7900{{ range $addresses }} {{ . | quote }}{{ end }}
{{- end }}
exec martlet serve --config /etc/martlet/martlet.yaml
{{ end -}}

{{- /* coturn's addresses, as they are announced to clients. */ -}}
{{- define "martlet.turnURLs" -}}
{{- $host := required "coturn.host is missing: the name or address at which clients reach coturn" .Values.coturn.host -}}
{{- $urls := list (printf "turn:%s:3478?transport=udp" $host) (printf "turn:%s:3478?transport=tcp" $host) -}}
{{- if .Values.coturn.tlsSecret -}}
{{- $urls = append $urls (printf "turns:%s:5349?transport=tcp" $host) -}}
{{- end -}}
{{- toRawJson $urls -}}
{{- end -}}

{{- /* What a schema cannot say: values that fit together. */ -}}
{{- define "martlet.check" -}}
{{- $media := .Values.media -}}
{{- $pods := int (include "martlet.maxPods" .) -}}
{{- $workers := int $media.workers -}}
{{- if not .Values.keys.existingSecret }}
{{- fail "keys.existingSecret is missing: name a Secret whose entries are the server's API keys, such as MARTLET_KEYS_APP" }}
{{- end }}
{{- /* Annotations may make a controller speak TLS to the pods, or pass TLS through to them. */}}
{{- if and .Values.tls.existingSecret .Values.http.ingress.enabled (not .Values.http.ingress.annotations) }}
{{- fail "tls.existingSecret: without annotations an Ingress sends the pods plain HTTP, but they serve TLS themselves; clear tls.existingSecret and let the Ingress terminate TLS (http.ingress.tlsSecret), or clear http.ingress.enabled and expose the Service (http.service.type), or set the http.ingress.annotations with which your controller speaks TLS to pods" }}
{{- end }}
{{- if eq $media.exposure "loadBalancer" }}
{{- if lt (len $media.loadBalancer.addresses) $pods }}
{{- fail (printf "media.loadBalancer.addresses has fewer addresses than there can be pods (%d): each pod is reached by one of its own" $pods) }}
{{- end }}
{{- if $media.announcedAddresses }}
{{- fail "media.announcedAddresses has no meaning with load balancers: media.loadBalancer.addresses is advertised" }}
{{- end }}
{{- end }}
{{- if has "discover" $media.announcedAddresses }}
{{- if or (ne $media.exposure "hostNetwork") (gt (len $media.announcedAddresses) 1) }}
{{- fail "media.announcedAddresses: discover must be the only entry and needs media.exposure hostNetwork: the ports that a STUN server sees of a pod with its own network do not lead back to it" }}
{{- end }}
{{- if not (dig "media" "stun_server" "" .Values.config) }}
{{- fail "config.media.stun_server is missing: media.announcedAddresses has discover, which asks it" }}
{{- end }}
{{- end }}
{{- if $media.sharedTcpPort }}
{{- if eq $media.exposure "nodePort" }}
{{- fail "media.sharedTcpPort has no meaning with node ports, which are never 443: TCP arrives at the media ports themselves; use hostPort, loadBalancer or hostNetwork" }}
{{- end }}
{{- if and (eq $media.exposure "hostNetwork") (lt (int $media.sharedTcpPort) 1024) }}
{{- fail (printf "media.sharedTcpPort: a pod without privileges cannot listen on port %d of the node; use media.exposure hostPort" (int $media.sharedTcpPort)) }}
{{- end }}
{{- end }}
{{- $stride := int (include "martlet.portsPerPod" .) -}}
{{- if lt $stride $workers }}
{{- fail (printf "media.nodePort.portsPerPod is %d, but a pod has %d media threads (media.workers), each with a port of its own" $stride $workers) }}
{{- end }}
{{- $last := dict "nodePort" (add (int $media.nodePort.first) (mul (sub $pods 1) $stride) $workers -1) "hostPort" (add (int $media.hostPort.first) $workers -1) "loadBalancer" (add (int $media.loadBalancer.firstPort) $workers -1) -}}
{{- if gt (int (get $last $media.exposure | default 0)) 65535 }}
{{- fail (printf "media.%s: %d pods with %d workers need ports up to %d, but the last one is 65535" $media.exposure $pods $workers (get $last $media.exposure)) }}
{{- end }}
{{- /* Pods on the host's network are beyond most network policies. */}}
{{- if and .Values.networkPolicy.enabled .Values.monitoring.serviceMonitor.enabled (not .Values.networkPolicy.metricsFrom) .Release.IsInstall (ne .Values.media.exposure "hostNetwork") }}
{{- fail "networkPolicy.metricsFrom is missing: the network policy blocks Prometheus from the private port, which the ServiceMonitor makes it scrape; list the peers that may reach it, such as the namespace of your Prometheus" }}
{{- end }}
{{- include "martlet.checkRecordings" . }}
{{- if .Values.coturn.enabled }}
{{- if not .Values.coturn.existingSecret }}
{{- fail "coturn.existingSecret is missing: name a Secret whose entry 'secret' coturn and Martlet share, of 16 bytes or more" }}
{{- end }}
{{- if not .Values.coturn.allowedPeers }}
{{- fail "coturn.allowedPeers is missing: list the addresses that Martlet announces; coturn relays to no others" }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Recordings need a folder that the pod can write to, that outlives the pod, and that has room beside the reserve. */ -}}
{{- define "martlet.checkRecordings" -}}
{{- $folder := dig "recording" "directory" "" .Values.config -}}
{{- $isMounted := false -}}
{{- range .Values.extraVolumeMounts -}}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $folder) }}{{- $isMounted = true }}{{- end -}}
{{- end -}}
{{- if and $folder (not $isMounted) -}}
{{- if not (hasPrefix "/var/lib/martlet/" (printf "%s/" $folder)) }}
{{- fail (printf "config.recording.directory: the server cannot write to %s; name a folder below /var/lib/martlet, or mount a volume there (extraVolumes, extraVolumeMounts)" $folder) }}
{{- end }}
{{- /* Uploaded files may go with the pod. */}}
{{- $isUploaded := dig "recording" "upload_endpoint" "" .Values.config }}
{{- if not (or .Values.persistence.enabled $isUploaded) }}
{{- fail "config.recording.directory: without persistence.enabled recordings are deleted with the pod; enable it, or mount a volume there (extraVolumes, extraVolumeMounts)" }}
{{- end }}
{{- $size := .Values.persistence.size -}}
{{- $unit := get (dict "Mi" 1 "Gi" 1024 "Ti" 1048576) (regexFind "[A-Z]i$" $size) -}}
{{- $megabytes := mul (regexFind "^[0-9]+" $size | int64) $unit -}}
{{- $reserve := dig "recording" "reserve" 1024 .Values.config | int64 -}}
{{- /* An existing volume cannot be changed by an upgrade, and some provisioners enforce no size. */}}
{{- if and .Values.persistence.enabled .Release.IsInstall (le $megabytes $reserve) }}
{{- fail (printf "persistence.size: a volume of %s has no room for recordings, which leave %d MB of it free (config.recording.reserve)" $size $reserve) }}
{{- end }}
{{- end -}}
{{- end -}}
