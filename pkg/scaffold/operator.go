package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// marks are texts that stand in manifests in the place of expressions until their text is written, since an expression
// is no YAML.
type marks struct {
	stem string
	list []string // the expressions
}

// newMarks chooses a text that no manifest contains.
func newMarks(texts []string) *marks {
	m := &marks{stem: "hole"}
	for slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, m.stem) }) {
		m.stem += "x"
	}
	return m
}

func (m *marks) add(expression string) string {
	m.list = append(m.list, expression)
	return fmt.Sprintf("%s%dz", m.stem, len(m.list)-1)
}

// delimiters are what may stand around expressions. Those in which a manifest has text of its own are passed over.
var delimiters = [][2]string{{"{{", "}}"}, {"[[", "]]"}, {"<%", "%>"}}

// choose returns the first delimiters that no text has anything like.
func choose(texts []string) [2]string {
	for _, pair := range delimiters {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, pair[0]) }) {
			return pair
		}
	}
	return delimiters[0]
}

// template is a text with its marks replaced by expressions, and what would be read as one hidden.
func (m *marks) template(text string, around [2]string) string {
	left, right := around[0], around[1]
	text = strings.ReplaceAll(text, left, fmt.Sprintf("%s%q%s", left, left, right))
	var pairs []string
	for i, expression := range m.list {
		pairs = append(pairs, fmt.Sprintf("%s%dz", m.stem, i), left+" "+expression+" "+right)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// operator is a config that is about to be written.
type operator struct {
	name      string
	upstream  *Upstream
	manifests []*source
	templates []string
	around    [2]string
	shared    *Conventions
}

func (o *operator) text() string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	apiVersion, kind := o.upstream.kind.ToAPIVersionAndKind()
	line("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n\nwatch:\n  apiVersion: %s\n  kind: %s", config.APIVersion,
		config.Kind, o.name, apiVersion, kind)
	if text := o.upstream.schemaText; text != "" {
		line("  schema:\n%s", strings.TrimRight(yamltext.Indent(text, "    "), "\n"))
	}
	line("\ndownstreams:")
	for i, s := range o.manifests {
		apiVersion, kind := s.kind.ToAPIVersionAndKind()
		line("  - name: %s\n    apiVersion: %s\n    kind: %s", s.downstream, apiVersion, kind)
		if from := o.targets(s); from != "" {
			line("    targetNamespaces: %s", from)
		}
		if o.isScaled(s) {
			line("    drift: {initialFields: [.spec.replicas]}   # an autoscaler's, once it has set them")
		}
		if generated := s.generatedLines(); generated != "" {
			line("    generated: [%s]", generated)
		}
		line("    template: |\n%s\n", strings.TrimRight(yamltext.Indent(o.templates[i], "      "), "\n"))
	}
	if o.around != delimiters[0] {
		line("delimiters: ['%s', '%s']\n", o.around[0], o.around[1])
	}
	line("conventionsFile: %s\nconventions:\n%s\n", o.shared.File, o.shared.own(o.name, o.needsFinalizer()))
	line("status:\n  conditions: {ready: %s, valid: %s, reconciling: %s, stalled: %s}\n  downstreams: %s",
		firstConditions.Ready, firstConditions.Valid, firstConditions.Reconciling, firstConditions.Stalled, recorded)
	return out.String()
}

// targets are the namespaces that a downstream may live in, empty where it is the upstream's own.
func (o *operator) targets(s *source) string {
	switch {
	case o.upstream.namespaced || !s.namespaced:
		return ""
	case s.anyNamespace:
		return "{from: Any}"
	}
	return fmt.Sprintf("{from: List, names: [%s]}", s.namespace)
}

// needsFinalizer reports whether owner references cannot clean up, or the loader cannot know that they can.
func (o *operator) needsFinalizer() bool {
	return slices.ContainsFunc(o.manifests, func(s *source) bool { return o.upstream.namespaced != s.namespaced })
}

// isScaled reports whether another of the manifests is an autoscaler of this one, whose replicas are then not ours to
// keep.
func (o *operator) isScaled(s *source) bool {
	return s.holds("spec", "replicas") && slices.ContainsFunc(o.manifests, func(other *source) bool {
		spec, _ := other.value["spec"].(map[string]any)
		target, _ := spec["scaleTargetRef"].(map[string]any)
		return target["kind"] == s.kind.Kind && target["name"] == s.name
	})
}

// celKinds are kinds of well-known APIs that are words of CEL's own: alone they could be mistaken for those.
var celKinds = []string{"namespace", "function", "package", "import"}

// nameDownstreams gives each manifest a name of its own: its kind, with a number from the second of a kind on.
func nameDownstreams(manifests []*source, upstream string) {
	used := map[string]bool{}
	for _, s := range manifests {
		stem := lowerFirst(s.kind.Kind)
		if slices.Contains(celKinds, stem) {
			stem = lowerFirst(upstream) + s.kind.Kind
		}
		name := stem
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s%d", stem, n)
		}
		used[name], s.downstream = true, name
	}
}

// lowerFirst writes NetworkPolicy as networkPolicy, and CSIDriver as csiDriver.
func lowerFirst(kind string) string {
	n := 1
	for n < len(kind) && isUpper(kind[n]) && (n+1 == len(kind) || isUpper(kind[n+1])) {
		n++
	}
	return strings.ToLower(kind[:n]) + kind[n:]
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
