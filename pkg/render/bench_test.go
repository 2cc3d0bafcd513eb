package render

import (
	"bytes"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/render/program"
)

// benchmarkTemplate is a typical Deployment; Helm's functions and Corollary's render it the same.
const benchmarkTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .metadata.name }}
  namespace: {{ .metadata.namespace }}
spec:
  replicas: {{ .spec.replicas | default 1 }}
  selector:
    matchLabels: {app: {{ .metadata.name }}}
  template:
    metadata:
      labels: {app: {{ .metadata.name }}}
    spec:
      {{- if .spec.serviceAccount }}
      serviceAccountName: {{ .spec.serviceAccount }}
      {{- end }}
      containers:
        - name: app
          image: "{{ .spec.registry }}/{{ .spec.image }}:{{ .spec.tag }}"
          ports:
            - name: http
              containerPort: {{ .spec.port }}
          env:
            {{- range .spec.env }}
            - name: {{ .name }}
              value: {{ .value | quote }}
            {{- end }}
          resources:
            requests: {cpu: 100m, memory: 128Mi}
            limits: {memory: 256Mi}
          readinessProbe:
            httpGet: {path: /healthz, port: http}
`

func benchmarkUpstream() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "shop", "namespace": "apps"},
		"spec": map[string]any{
			"replicas": int64(3), "registry": "registry.example.com", "image": "shop", "tag": "1.10", "port": int64(8080),
			"serviceAccount": "shop",
			"env": []any{
				map[string]any{"name": "LOG_LEVEL", "value": "info"},
				map[string]any{"name": "REGION", "value": "eu-1"},
			},
		},
	}
}

func BenchmarkDeployment(b *testing.B) {
	data := program.Data{Upstream: benchmarkUpstream()}
	b.Run("holes", func(b *testing.B) {
		tmpl, err := Compile(benchmarkTemplate, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tmpl.Execute(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("baseline-text-and-parse", func(b *testing.B) {
		tmpl := template.Must(template.New("").Funcs(sprig.TxtFuncMap()).Parse(benchmarkTemplate))
		b.ReportAllocs()
		for b.Loop() {
			var text bytes.Buffer
			if err := tmpl.Execute(&text, data.Upstream); err != nil {
				b.Fatal(err)
			}
			var doc map[string]any
			if err := yaml.Unmarshal(text.Bytes(), &doc); err != nil {
				b.Fatal(err)
			}
		}
	})
}
