{{- define "rocketmq.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- define "rocketmq.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Addresses of all name servers, separated by semicolons. */}}
{{- define "rocketmq.nameServers" -}}
{{- $release := .Release.Name -}}
{{- $servers := list -}}
{{- range $number := until (int .Values.namesrv.replicas) -}}
{{- $servers = append $servers (printf "%s-namesrv-%d.%s-namesrv:9876" $release $number $release) -}}
{{- end -}}
{{ join ";" $servers }}
{{- end }}

{{- define "rocketmq.podSecurity" -}}
runAsNonRoot: true
runAsUser: 3000
runAsGroup: 3000
fsGroup: 3000
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "rocketmq.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- define "rocketmq.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .root.Values.storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources: {requests: {storage: {{ .storage }}}}
{{- end }}
