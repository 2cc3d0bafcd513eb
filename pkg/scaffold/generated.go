package scaffold

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// passwordKey matches the keys of Secrets whose values are passwords. A token may come from elsewhere.
var passwordKey = regexp.MustCompile(`(?i)(passw(or)?d|passphrase)$`)

// generatePasswords leaves passwords of Secrets out of the templates: each custom resource gets random ones of its own.
// A password that is a hole, or that other values contain, is kept.
func (d *Draft) generatePasswords() {
	for _, s := range d.operator.manifests {
		if s.kind.Group != "" || s.kind.Kind != "Secret" {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			values, _ := s.value[field].(map[string]any)
			for _, p := range pairs(mapEntry(s.root, field)) {
				key := p.key.Value
				path := fieldpath.New(field, key)
				isHole := slices.ContainsFunc(d.holes, func(h *hole) bool { return h.source == s && h.path.Equal(path) })
				text, _ := values[key].(string)
				if !passwordKey.MatchString(key) || text == "" || isHole {
					continue
				}
				if d.occursElsewhere(text, field == "data") {
					d.note("%s of downstream %s is a password that other values contain, too, so it is not generated", path,
						s.downstream)
					continue
				}
				s.drop(field, key)
				s.generated = append(s.generated, path.String())
				d.note("%s of downstream %s is a password: each %s gets a random one, which nobody but the API server knows", path,
					s.downstream,
					d.operator.upstream.kind.Kind)
			}
			if rest, ok := s.value[field].(map[string]any); ok && len(rest) == 0 {
				s.drop(field)
			}
		}
	}
}

// occursElsewhere reports whether the value of a Secret is, or is a part of, more than one text of the manifests.
func (d *Draft) occursElsewhere(value string, encoded bool) bool {
	if encoded {
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
			value = string(plain)
		}
	}
	times := 0
	var visit func(v any, encoded bool)
	visit = func(v any, encoded bool) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				visit(inner, encoded || key == "data")
			}
		case []any:
			for _, inner := range v {
				visit(inner, encoded)
			}
		case string:
			plain, err := base64.StdEncoding.DecodeString(v)
			if strings.Contains(v, value) || encoded && err == nil && strings.Contains(string(plain), value) {
				times++
			}
		}
	}
	for _, s := range d.operator.manifests {
		visit(s.value, false)
	}
	return times > 1
}
