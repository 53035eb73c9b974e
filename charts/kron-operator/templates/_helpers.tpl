{{- define "kron-operator.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "kron-operator.labels" -}}
app.kubernetes.io/name: kron-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
