package simpleschema

import (
	"maps"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// cycles reports types that contain themselves, each cycle once: a CustomResourceDefinition cannot describe them.
func (p *parser) cycles() {
	done := map[string]bool{}
	for _, start := range slices.Sorted(maps.Keys(p.types)) {
		p.follow(start, nil, done)
	}
}

// follow goes through the types that a type contains. path are the types on the way to it.
func (p *parser) follow(typeName string, path []string, done map[string]bool) {
	if i := slices.Index(path, typeName); i >= 0 {
		p.at = fieldpath.New("types", typeName)
		p.fail(
			"write object in one of them, whose fields are not checked",
			"the type contains itself: %s",
			strings.Join(append(slices.Clone(path[i:]), typeName), " → "),
		)
		return
	}
	if done[typeName] {
		return
	}
	used := map[string]bool{}
	p.contained(p.types[typeName], used)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		p.follow(name, append(path, typeName), done)
	}
	done[typeName] = true
}

// contained adds the declared types that a value names.
func (p *parser) contained(value any, used map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			p.contained(field, used)
		}
	case string:
		text, _, _ := strings.Cut(value, "|")
		for inner := ""; inner != text; {
			inner = text
			text = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(text), "[]"), "map[string]"))
		}
		if _, declared := p.types[text]; declared {
			used[text] = true
		}
	}
}
