package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// typedCRDs define an upstream App and a downstream Thing.
const typedCRDs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: App, plural: apps}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                text: {type: string}
                whole: {type: integer}
                flag: {type: boolean}
                either: {x-kubernetes-int-or-string: true}
                any: {x-kubernetes-preserve-unknown-fields: true}
                more: {x-kubernetes-preserve-unknown-fields: true}
                texts: {type: object, additionalProperties: {type: string}}
                numbers: {type: object, additionalProperties: {type: integer}}
                list: {type: array, items: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer}}}}
            status:
              type: object
              properties:
                replicas: {type: integer}
                message: {type: string}
                conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [must, fills]
              properties:
                must: {type: string}
                fills: {type: string, default: a}
                "on": {type: boolean}
                size: {type: integer, enum: [1, 2, 3]}
                ratio: {type: number}
                either: {x-kubernetes-int-or-string: true}
                open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer}}}
                object: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
                closed: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {a: {type: string}}}}}
                set: {type: array, items: {type: string}, x-kubernetes-list-type: set}
                pairs: {type: array, items: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer, default: 1}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b]}
`

// typedConfig is a config with one downstream, whose template begins in line 10.
const typedConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch: {apiVersion: example.com/v1, kind: App}
downstreams:
  - name: it
    apiVersion: %s
    kind: %s
    template: |
%s
conventions:
  fieldManager: app
  labels: {tools.example.com/managed-by: app}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true}
status:
  conditions: {ready: Ready}
  fields: [%s]
`

// checked are the refusals and warnings of a config, each as LINE: problem: fix, one in a line.
func checked(t *testing.T, apiVersion, kind, template, fields string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "crds.yaml"), typedCRDs)
	source, err := kinds.Offline(filepath.Join(dir, "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := compileTyped(t, source, apiVersion, kind, template, fields)
	var lines []string
	for i := range p.Refusals {
		lines = append(lines, p.Refusals[i].Error())
	}
	for i := range p.Warnings {
		lines = append(lines, "warning: "+p.Warnings[i].Error())
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(lines, "\n"), p.Config.Metadata.Name+".yaml:", ""), " downstreams[0].template:", "")
}

func compileTyped(t *testing.T, source kinds.Source, apiVersion, kind, template, fields string) *pipeline.Pipeline {
	t.Helper()
	t.Chdir(t.TempDir()) // so that errors name the file alone
	indented := "      " + strings.ReplaceAll(strings.TrimRight(template, "\n"), "\n", "\n      ")
	write(t, "app.yaml", fmt.Sprintf(typedConfig, apiVersion, kind, indented, fields))
	files, errs := config.Load(config.Options{Files: []string{"app.yaml"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	p, errs, err := pipeline.Compile(files[0], pipeline.Options{Kinds: source})
	if err != nil || len(errs) > 0 {
		t.Fatalf("%v %v", errs, err)
	}
	return p
}

// TestTypes: what a template has wrong by the schema of a Thing.
func TestTypes(t *testing.T) {
	for _, row := range thingRows {
		if got := checked(t, "example.com/v1", "Thing", thing(row.spec), ""); got != row.want {
			t.Errorf("%s: %s: got\n%s\nwant\n%s", row.reason, row.spec, got, row.want)
		}
	}
}

// thing is a template of a Thing, whose spec begins in the line 11 of the config.
func thing(spec string) string {
	if strings.HasPrefix(spec, "{{ $x") {
		spec += ", must: x"
	} else if !strings.Contains(strings.ToLower(spec), "must:") {
		spec = "must: x, " + spec
	}
	return "metadata: {name: web}\nspec: { " + spec + " }"
}

// thingRows are specs of a Thing in one line, and what is wrong with them.
var thingRows = []struct{ reason, spec, want string }{
	{"a whole hole keeps its type", "size: {{ .spec.whole }}", ""},
	{"text beside a hole makes text", "size: 80{{ .spec.any }}", "11: .spec.size must be an integer, and {{ .spec.any }} gives text: let the hole be the whole value, as in `{{ … | int }}`"},
	{"so do quotes", `size: "{{ .spec.any }}"`, "11: .spec.size must be an integer, and {{ .spec.any }} gives text: let the hole be the whole value, as in `{{ … | int }}`"},
	{"so does printf", `size: {{ printf "%d" 1 }}`, `11: .spec.size must be an integer, and {{ printf "%d" 1 }} is a string: write ` + "`{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"int converts it", `size: {{ printf "%d" 1 | int }}`, ""},
	{"a boolean", `"on": "{{ .spec.any }}"`, "11: .spec.on must be a boolean, and {{ .spec.any }} gives text: let the hole be the whole value, as in `{{ … | int }}`"},
	{"text where text is wanted", "must: a-{{ .spec.whole }}", ""},
	{"text where either is wanted", "either: 80{{ .spec.any }}", ""},
	{"a string that is no number", "size: two", `11: .spec.size must be an integer, not the string "two": write an integer`},
	{"a number in quotes", `size: "2"`, `11: .spec.size must be an integer, not the string "2": write it without quotes`},
	{"a number where text is wanted", "must: 8080", `11: .spec.must must be a string, not the integer 8080: quote it`},
	{"a boolean of YAML 1.1 where text is wanted", "must: on", `11: .spec.must must be a string, not the boolean true: quote it`},
	{"a fraction where an integer is wanted", "size: 1.5", "11: .spec.size must be an integer, not the number 1.5: write an integer"},
	{"an integer where a number is wanted", "ratio: 1", ""},
	{"a fraction", "ratio: 1.5", ""},
	{"a value that is not listed", "size: 4", `11: .spec.size cannot be "4": it is one of 1, 2, 3`},
	{"null is as good as left out", "size: null", ""},
	{"either a number", "either: 5", ""},
	{"or text", "either: http", ""},
	{"but no boolean", "either: true", "11: .spec.either must be an integer or a string, not the boolean true: quote it"},
	{"a field that is misspelt", "sise: 1", "11: .spec has no field sise: did you mean size?"},
	{"a field that nothing resembles", "unheardof: 1", "11: .spec has no field unheardof: it has closed, either, fills, must, object, on, open, pairs, ratio, set, size"},
	{"a field of what stores anything", "open: {more: [1]}", ""},
	{"whose own fields are typed", "open: {size: two}", `11: .spec.open.size must be an integer, not the string "two": write an integer`},
	{"an object inside", "object: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {x: 1}}", ""},
	{"an object inside with fields of its own", "closed: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {a: b}}", ""},
	{"which are typed", "closed: {apiVersion: v1, kind: Pod, spec: {b: b}}", "11: .spec.closed.spec has no field b: it has a"},
	{"a list for a map", "open: [a]", "11: .spec.open must be a map, not a list: write KEY: VALUE below it"},
	{"a map for a list", "set: {a: b}", "11: .spec.set must be a list, not a map: begin each item with `- `"},
	{"text for a list", "set: a", "11: .spec.set must be a list, not the string \"a\": begin each item with `- `"},
	{"a map for text", "must: {a: b}", "11: .spec.must must be a string, not a map: write a string"},
	{"an item", "set: [1]", "11: .spec.set[] must be a string, not the integer 1: quote it"},
	{"an item of a set twice", "set: [a, b, a]", "11: .spec.set has two items with the value a, the other in line 11: leave one out"},
	{"equal keys", "pairs: [{a: x, b: 1}, {a: x, b: 2}, {a: x}]", "11: .spec.pairs has two items with the a x and the b 1, the other in line 11: leave one out"},
	{"keys that differ", "pairs: [{a: x, b: 1}, {a: x, b: 2}, {a: z}]", ""},
	{"keys from holes", "pairs: [{a: '{{ .spec.text }}', b: 1}, {a: '{{ .metadata.name }}', b: 1}]", ""},
	{"a required field that is missing", "size: 1, MUST: 1", "11: .spec has no field MUST: did you mean must?\n11: .spec.must is missing: the schema requires it: add it"},
	{"or null", "must: null", "11: .spec.must is missing: the schema requires it: add it"},
	{"one that may be left out", "must: '{{ .spec.text | omitempty }}'", ""},
	{"one of an item", "pairs: [{b: 2}]", "11: .spec.pairs[].a is missing: the schema requires it: add it"},
	{"a string for an integer", "size: {{ .spec.text }}", "11: .spec.size must be an integer, and {{ .spec.text }} is a string: write `{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"a number for text", "must: {{ .spec.whole }}", "11: .spec.must must be a string, and {{ .spec.whole }} is an integer: write `{{ … | quote }}`, or declare a string in the upstream's schema"},
	{"quote converts it", "must: {{ .spec.whole | quote }}", ""},
	{"a boolean for text", "must: {{ .spec.flag }}", "11: .spec.must must be a string, and {{ .spec.flag }} is a boolean: write `{{ … | quote }}`, or declare a string in the upstream's schema"},
	{"a string unless it is missing", "size: {{ .spec.text | default 1 }}", "warning: 11: .spec.size must be an integer, and {{ .spec.text | default 1 }} is a string: write `{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"a wrong default", `size: {{ .spec.whole | default "x" }}`, "warning: 11: .spec.size must be an integer, and {{ .spec.whole | default \"x\" }} is a string: write `{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"either for an integer may fit", "size: {{ .spec.either }}", ""},
	{"anything may fit", "size: {{ .spec.any }}", ""},
	{"a map for a map", "open: {{ .spec.texts }}", ""},
	{"a map for text", "must: {{ .spec.texts }}", "11: .spec.must must be a string, and {{ .spec.texts }} is a map: write `{{ … | quote }}`, or declare a string in the upstream's schema"},
	{"a list for a set", "set: {{ .spec.list }}", "11: .spec.set[] must be a string, and {{ .spec.list }} has a map there: declare the same type in the CustomResourceDefinition of the upstream"},
	{"fields of items that fit", "pairs: {{ .spec.list }}", ""},
	{"toJson gives the value", "set: {{ .spec.texts | toJson }}", "11: .spec.set must be a list, and {{ .spec.texts | toJson }} is a map: let it read another field"},
	{"a variable", "{{ $x := .spec.text }}size: {{ $x }}", "11: .spec.size must be an integer, and {{ $x }} is a string: write `{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"a text of a function is text", "size: {{ .spec.any | upper }}", "11: .spec.size must be an integer, and {{ .spec.any | upper }} is a string: write `{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"nothing is known of ternary", "size: {{ ternary 1 2 .spec.flag }}", ""},
	{"wrong on one path is wrong", "size: {{ if .spec.flag }}1{{ else }}two{{ end }}", `11: .spec.size must be an integer, not the string "two": write an integer`},
	{"the third branch, too", "size: {{ if .spec.flag }}1{{ else if .spec.any }}2{{ else }}two{{ end }}", `11: .spec.size must be an integer, not the string "two": write an integer`},
	{"what excludes each other fits each other", "{{ if .spec.flag }}set{{ else }}open{{ end }}: {{ if .spec.flag }}[a]{{ else }}{a: b}{{ end }}", ""},
	{"also where the conditions differ in words", "{{ if .spec.flag }}set{{ else }}open{{ end }}: {{ if eq .spec.flag true }}[a]{{ else }}{a: b}{{ end }}", ""},
	{"items that exclude each other", "set: [b{{ if .spec.flag }}, a{{ end }}{{ if eq .spec.text \"x\" }}, a{{ end }}]", ""},
	{"an item that is there twice on one path", "set: [a,\n{{ if .spec.flag }}a{{ end }}]", "12: .spec.set has two items with the value a, the other in line 11: leave one out"},
	{"items of other lines that exclude each other", "set: [b,\n{{ if .spec.flag }}a,{{ end }}\n{{ if eq .spec.text \"x\" }}a{{ end }}]", ""},
}

// TestTypesOfBuiltinKinds: what a template of a Deployment has wrong, without a cluster.
func TestTypesOfBuiltinKinds(t *testing.T) {
	for _, row := range deploymentRows {
		if got := checked(t, "apps/v1", "Deployment", deployment(row.spec, row.pod), ""); got != row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.reason, got, row.want)
		}
	}
	// Not among what the API server refuses: it cuts the number down.
	want := "12: .spec.replicas holds whole numbers from -2147483648 to 2147483647, not the integer 4294967297: give a number that it holds"
	if got := checked(t, "apps/v1", "Deployment", deployment("  replicas: 4294967297", ""), ""); got != want {
		t.Errorf("a number that is too large: got\n%s\nwant\n%s", got, want)
	}
}

// deploymentRows are fields of a Deployment and of its pods, and what is wrong with them.
var deploymentRows = []struct{ reason, spec, pod, want string }{
	{"nothing", "", "", ""},
	{"text in an integer field", "  replicas: two", "", `12: .spec.replicas must be an integer, not the string "two": write an integer`},
	{"a string hole in an integer field", "  replicas: {{ .spec.text }}", "", "12: .spec.replicas must be an integer, and {{ .spec.text }} is a string: write `{{ … | int }}`, or declare an integer in the upstream's schema"},
	{"a field of a reference", "  strategy: {rollingUpdate: {maxSurge: 1}, tipe: Recreate}", "", "12: .spec.strategy has no field tipe: did you mean type?"},
	{"a value that is not listed", "  strategy: {type: Recreat}", "", `12: .spec.strategy.type cannot be "Recreat": did you mean Recreate?`},
	{"a label that is no string", "  revisionHistoryLimit: 3\n  paused: \"no\"", "", `13: .spec.paused must be a boolean, not the string "no": write a boolean`},
	{"a key that is misspelt", "", "restartPolcy: Always", "22: .spec.template.spec has no field restartPolcy: did you mean restartPolicy?"},
	{"a quantity is a number or text", "", "overhead: {cpu: 1, memory: 1Gi}", ""},
	{"or a fraction", "", "overhead: {cpu: 0.5}", ""},
	{"but no boolean", "", "overhead: {cpu: yes}", "22: .spec.template.spec.overhead.cpu must be a string or a number, not the boolean true: quote it"},
	{"a port has a number or a name", "", "initContainers: [{name: a, image: a, restartPolicy: Always, livenessProbe: {httpGet: {port: http}}, readinessProbe: {httpGet: {port: 80}}}]", ""},
	{"a list where a map is wanted", "", "securityContext: [a]", "22: .spec.template.spec.securityContext must be a map, not a list: write KEY: VALUE below it"},
	{"a name that is given twice", "", "volumes:\n- {name: a, emptyDir: {}}\n- {name: a, emptyDir: {}}", "24: .spec.template.spec.volumes has two items with the name a, the other in line 23: leave one out"},
	{"equal ports of two protocols", "", "initContainers: [{name: a, image: a, ports: [{containerPort: 80, protocol: UDP}, {containerPort: 80}]}]", ""},
	{"equal ports of one, once by default", "", "initContainers: [{name: a, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80}]}]",
		"22: .spec.template.spec.initContainers[].ports has two items with the containerPort 80 and the protocol TCP, the other in line 22: leave one out"},
	{"a number for an environment variable", "", "initContainers: [{name: a, env: [{name: A, value: 1}]}]", "22: .spec.template.spec.initContainers[].env[].value must be a string, not the integer 1: quote it"},
	{"a hole with one", "", "initContainers: [{name: a, env: [{name: A, value: {{ .spec.whole }}}]}]",
		"22: .spec.template.spec.initContainers[].env[].value must be a string, and {{ .spec.whole }} is an integer: write `{{ … | quote }}`, or declare a string in the upstream's schema"},
	{"a container without a name", "", "initContainers: [{image: a}]", "warning: 22: .spec.template.spec.initContainers[].name is missing: the schema requires it: add it"},
	{"entries that toYaml prints", "", "nodeSelector:\n  {{- toYaml .spec.texts | nindent 8 }}", ""},
	{"with numbers", "", "nodeSelector:\n  {{- toYaml .spec.numbers | nindent 8 }}",
		"23: .spec.template.spec.nodeSelector[*] must be a string, and {{- toYaml .spec.numbers | nindent 8 }} has an integer there: declare the same type in the CustomResourceDefinition of the upstream"},
	{"items that toYaml prints, beside others", "", "tolerations:\n- {operator: Exists}\n{{- with .spec.more }}\n{{- toYaml . | nindent 6 }}\n{{- end }}", ""},
	{"a range with a condition", "", "volumes:\n{{- range .spec.list }}\n- name: {{ .a }}\n  {{- if .b }}\n  emptyDir: {sizeLimit: {{ .b }}}\n  {{- else }}\n  emptyDir: {}\n  {{- end }}\n{{- end }}", ""},
}

// deployment is a template with more fields of the spec, at the line 12 of the config, and of its pods, at the line 22.
func deployment(spec, pod string) string {
	if spec == "" {
		spec = "  # nothing"
	}
	return "metadata: {name: web}\nspec:\n" + spec + `
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: web
        image: web
      ` + strings.ReplaceAll(pod, "\n", "\n      ")
}

// TestTypesOfStatus: paths and values of status.fields.
func TestTypesOfStatus(t *testing.T) {
	for _, row := range []struct{ reason, fields, want string }{
		{"what fits", "{path: .status.replicas, value: 'size(self.metadata.name)'}, {path: .status.message, value: 'string(1)'}", ""},
		{"a path that is misspelt", "{path: .status.mesage, value: \"'a'\"}", "warning: 30: status.fields[0].path: the schema of App has no .status.mesage, which is not stored: did you mean message?"},
		{"a path that is not declared", "{path: .status.color, value: \"'a'\"}", "warning: 30: status.fields[0].path: the schema of App has no .status.color, which is not stored: add it to the CustomResourceDefinition: corollary generate crd-status prints the lines"},
		{"text for a number", "{path: .status.replicas, value: \"'a'\"}", "30: status.fields[0].value: it gives a string, and the schema requires an integer in .status.replicas: convert it, or declare another type in the CustomResourceDefinition"},
		{"a number for text", "{path: .status.message, value: 'downstreams.it.?spec.?replicas.orValue(0)'}", "30: status.fields[0].value: it gives an integer, and the schema requires a string in .status.message: convert it, or declare another type in the CustomResourceDefinition"},
		{"what is not known", "{path: .status.message, value: self.spec.any}", ""},
	} {
		got := checked(t, "apps/v1", "Deployment", deployment("", ""), row.fields)
		if got != row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.reason, got, row.want)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
