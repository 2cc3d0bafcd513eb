package cli

import (
	"regexp"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/render"
)

// structureHoles returns the holes of a downstream through which a custom resource can put a map or list into the
// document, and how many of the holes that stand alone cannot hold one, since the upstream's schema declares text, a
// number or a boolean there. In doubt a hole counts as one that lets structure in.
func structureHoles(p *pipeline.Pipeline, d *pipeline.Downstream) (open []render.Hole, closed int) {
	left, right := "{{", "}}"
	if list := p.Config.Delimiters; len(list) == 2 {
		left, right = list[0], list[1]
	}
	moves := regexp.MustCompile(regexp.QuoteMeta(left) + `-?\s*(range|with|define|block)\b`).MatchString(d.Config.Template)
	for _, h := range d.Holes() {
		if !h.Structure {
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(h.Text, left), right)
		if !moves && scalarField(p.Upstream.Schema, strings.Trim(text, "- \t\r\n")) {
			closed++
			continue
		}
		open = append(open, h)
	}
	return open, closed
}

// plainField matches a hole that prints one field of the upstream, perhaps with a literal instead of a missing one.
var plainField = regexp.MustCompile("^((?:\\.[A-Za-z_][A-Za-z0-9_]*)+)(?:\\s*\\|\\s*default\\s+(?:\"[^\"]*\"|`[^`]*`|-?[0-9.]+|true|false))?(?:\\s*\\|\\s*omitempty)?$")

// scalarField tells whether what stands between the delimiters is a field that can hold neither map nor list. The dot
// must be the upstream.
func scalarField(s *spec.Schema, text string) bool {
	m := plainField.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	switch m[1] {
	case ".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.generation", ".apiVersion", ".kind":
		return true
	}
	for _, name := range strings.Split(m[1], ".")[1:] {
		if s == nil {
			return false
		}
		property, ok := s.Properties[name]
		switch {
		case ok:
			s = &property
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties.Schema
		default:
			return false
		}
	}
	return s != nil && isScalar(s)
}

func isScalar(s *spec.Schema) bool {
	either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string")
	return either || len(s.Type) == 1 && (s.Type[0] == "string" || s.Type[0] == "integer" || s.Type[0] == "number" || s.Type[0] == "boolean")
}
