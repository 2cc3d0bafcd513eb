package compile_test

import (
	"slices"
	"strings"
	"testing"
)

// What is kept of the objects of a downstream with forEach is what others read of each, whichever way they name it.
func TestReadsOfSeveralObjects(t *testing.T) {
	const text = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: x}
watch: {apiVersion: tools.example.com/v1, kind: Thing}
variables: [{name: first, expression: VARIABLE}]
downstreams:
  - name: each
    apiVersion: v1
    kind: Service
    forEach: {items: self.spec.items}
    template: 'metadata: {name: "{{ item }}"}'
  - name: page
    apiVersion: v1
    kind: ConfigMap
    when: WHEN
    template: |
      metadata: {name: page}
      data: {a: "HOLE"}
conventions: {fieldManager: x, labels: {a.example.com/x: x}, hash: {annotation: a.example.com/hash}, owner: {reference: true}}
status: {enabled: false}
`
	ip := [][]string{{"spec", "clusterIP"}}
	for _, row := range []struct {
		reason, variable, when, hole string
		kept                         [][]string
		whole                        bool
	}{
		{"nobody reads them", "'x'", "'true' == 'true'", "x", nil, false},
		{"a template, by name", "'x'", "true", `{{ (downstream \"each\").a.spec.clusterIP }}`, ip, false},
		{"a template, all of them", "'x'", "true", `{{ range downstream \"each\" }}{{ .spec.clusterIP }}{{ end }}`, ip, false},
		{"a template, one as a whole", "'x'", "true", `{{ (downstream \"each\").a | toJson | sha256sum }}`, nil, true},
		{"an expression, by name", "'x'", "downstreams.each.a.spec.clusterIP != ''", "x", ip, false},
		{"a variable, by name", "downstreams.each.a.spec.clusterIP", "true", `{{ variable \"first\" }}`, ip, false},
		{"a variable, of each", "downstreams.each.filter(n, downstreams.each[n].spec.clusterIP != '').size()", "true", `{{ variable \"first\" }}`,
			[][]string{{"metadata", "name"}, {"spec", "clusterIP"}}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			hole := strings.ReplaceAll(row.hole, `\"`, `"`)
			conf := strings.NewReplacer("VARIABLE", `"`+row.variable+`"`, "WHEN", `"`+row.when+`"`, `"HOLE"`, `'`+hole+`'`).Replace(text)
			p := compileConfig(t, conf)
			view := p.Downstreams[0].View
			if view.KeepWhole != row.whole {
				t.Errorf("whole objects are kept: %v", view.KeepWhole)
			}
			for _, want := range row.kept {
				if !slices.ContainsFunc(view.Keep, func(have []string) bool { return slices.Equal(have, want) }) {
					t.Errorf("of each object %v is kept, and %v is read", view.Keep, want)
				}
			}
		})
	}
}
