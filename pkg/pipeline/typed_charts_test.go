package pipeline_test

import "testing"

// TestTypesOfCharts: nothing is said of templates as charts have them, which use all that the language has.
func TestTypesOfCharts(t *testing.T) {
	for reason, row := range map[string]struct{ apiVersion, kind, template string }{
		"a Deployment": {"apps/v1", "Deployment", `{{- define "selector" }}
app.kubernetes.io/name: {{ .metadata.name }}
{{- end }}
{{- define "labels" }}
{{- include "selector" . }}
app.kubernetes.io/version: {{ .spec.text | quote }}
{{- end }}
metadata:
  name: {{ .metadata.name }}
  labels:
    {{- include "labels" . | nindent 4 }}
  {{- with .spec.any.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if not .spec.any.autoscaling }}
  replicas: {{ .spec.whole }}
  {{- end }}
  selector:
    matchLabels: {{- include "selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "labels" . | nindent 8 }}
      annotations:
        checksum: {{ .spec.any | toJson | sha256sum }}
        port: "{{ .spec.whole }}"
    spec:
      {{- with .spec.any.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {{ .spec.any.security | default dict | toJson }}
      containers:
        - name: {{ .metadata.name | trunc 63 | trimSuffix "-" }}
          image: "{{ .spec.text }}:{{ .spec.any.tag | default "latest" }}"
          imagePullPolicy: {{ .spec.any.pull | default "IfNotPresent" }}
          ports:
            - {name: http, containerPort: {{ .spec.whole }}, protocol: TCP}
            {{- range .spec.list }}
            - name: {{ .a }}
              containerPort: {{ .b }}
            {{- end }}
          env:
            - name: FIXED
              value: "1"
            {{- range $name, $value := .spec.texts }}
            - name: {{ $name | upper }}
              value: {{ $value }}
            {{- end }}
            {{- range $name, $value := .spec.numbers }}
            - name: {{ $name }}
              value: {{ $value | quote }}
            {{- end }}
            {{- if eq .spec.text "a" }}
            - name: MODE
              value: a
            {{- else if eq .spec.text "b" }}
            - name: MODE
              value: b
            {{- else }}
            - name: MODE
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            {{- end }}
          livenessProbe:
            {{- if .spec.flag }}
            httpGet: {path: /, port: http}
            {{- else }}
            tcpSocket:
              port: {{ .spec.either }}
            {{- end }}
          resources:
            {{- toYaml .spec.any.resources | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: /data}
            {{- if .spec.any.extra }}
            {{- toYaml .spec.any.extra | nindent 12 }}
            {{- end }}
      volumes:
        - name: data
          {{- if .spec.flag }}
          persistentVolumeClaim: {claimName: {{ .metadata.name }}}
          {{- else }}
          emptyDir: {}
          {{- end }}
      nodeSelector:
        {{- range $key, $value := .spec.texts }}
        {{ $key }}: {{ $value }}
        {{- end }}
      affinity: {{ .spec.any.affinity | omitempty }}
      terminationGracePeriodSeconds: {{ ternary 10 60 .spec.flag }}
      tolerations: {{ .spec.any.tolerations }}
`},
		"an Ingress": {"networking.k8s.io/v1", "Ingress", `metadata: {name: web}
spec:
  ingressClassName: {{ .spec.any.class | default "nginx" }}
  {{- if .spec.flag }}
  tls:
    - hosts: [{{ .spec.text }}]
      secretName: web-tls
  {{- end }}
  rules:
    {{- range .spec.list }}
    - host: {{ .a }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: web, port: {number: {{ .b | int }}}}}
    {{- else }}
    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
    {{- end }}
`},
		"a Secret": {"v1", "Secret", `metadata: {name: web}
type: Opaque
stringData:
  {{- range $name, $value := .spec.texts }}
  {{ $name }}.conf: |
    # {{ $name }}
    value = {{ $value }}
  {{- end }}
  port: {{ .spec.whole | toString }}
data: {{ .spec.any.data | default dict }}
`},
		"a HorizontalPodAutoscaler": {"autoscaling/v2", "HorizontalPodAutoscaler", `metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: {{ .spec.whole }}
  maxReplicas: {{ mul .spec.whole 2 }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ max 50 .spec.whole }}}}
  {{- with .spec.any.behavior }}
  behavior: {{ . }}
  {{- end }}
`},
		"a NetworkPolicy": {"networking.k8s.io/v1", "NetworkPolicy", `metadata: {name: web}
spec:
  podSelector: {}
  policyTypes: [Ingress{{ if .spec.flag }}, Egress{{ end }}]
  ingress:
    - from:
        - namespaceSelector: {matchLabels: {{ .spec.texts }}}
      ports:
        - {port: http}
        - {port: 80, protocol: UDP}
        - port: {{ .spec.either }}
`},
	} {
		if got := checked(t, row.apiVersion, row.kind, row.template, ""); got != "" {
			t.Errorf("%s: got\n%s", reason, got)
		}
	}
}
