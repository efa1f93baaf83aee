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

{{- /* As many pods as there can ever be: each has ports of its own. */ -}}
{{- define "martlet.maxPods" -}}
{{- if .Values.autoscaling.enabled }}{{ max (int .Values.replicas) (int .Values.autoscaling.maxReplicas) }}{{ else }}{{ int .Values.replicas }}{{ end -}}
{{- end -}}

{{- /* The server's settings: what people wrote, below what the chart needs to be so. */ -}}
{{- define "martlet.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $http := dict "bind" "0.0.0.0" "port" 7880 -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $http "tls" (dict "certificate" "/etc/martlet-tls/tls.crt" "key" "/etc/martlet-tls/tls.key") -}}
{{- else -}}
{{- $_ := set $config "trusted_proxy" true -}}
{{- end -}}
{{- $chart := dict "http" $http "private" (dict "bind" "0.0.0.0" "port" 7881) "media" (dict "udp_port" 7900 "workers" (int .Values.media.workers)) "sessions" (dict "drain" (int .Values.drainSeconds)) "storage" (dict "path" "/var/lib/martlet/martlet.db") -}}
{{- toYaml (mergeOverwrite $config $chart) -}}
{{- end -}}
