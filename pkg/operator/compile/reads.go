package compile

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// statusPaths are the fields of the status that an expression reads; an empty one is the whole.
func statusPaths(reads func(string) ([][]string, bool)) [][]string {
	var list [][]string
	paths, whole := reads("self")
	for _, path := range paths {
		if len(path) > 0 && path[0] == "status" {
			list = append(list, path[1:])
		}
	}
	if whole {
		list = append(list, nil)
	}
	return list
}

// keep adds what a program reads below variable (and, of the map downstreams, below a downstream) to a view.
func keep(v *drift.View, program *rules.Program, variable string, d *operator.Downstream) {
	if program == nil {
		return
	}
	paths, whole := program.Reads(variable)
	if whole {
		v.KeepWhole = true
		return
	}
	for _, path := range paths {
		if d != nil {
			if len(path) == 0 || path[0] != d.Name {
				continue
			}
			if path = path[1:]; d.Several() && len(path) > 0 {
				path = path[1:] // the name of an object
			}
		}
		if len(path) == 0 {
			v.KeepWhole = true
			return
		}
		v.Keep = append(v.Keep, path)
	}
}

// readsStatus reports whether reads may reach the status of self.
func readsStatus(reads func(string) ([][]string, bool)) bool {
	paths, whole := reads("self")
	for _, path := range paths {
		whole = whole || len(path) == 0 || path[0] == "status"
	}
	return whole
}

// reader is what an expression, a template or a validator reads of a variable.
type reader func(variable string) (paths [][]string, whole bool)

// isBool reports whether an expression gives true or false, in which no value can be read.
func isBool(p *rules.Program) bool {
	s := p.Result()
	return s != nil && slices.Equal([]string(s.Type), []string{"boolean"})
}

// readsOfRule are those of a part of a rule of validate.
func readsOfRule(v *rules.Validator, i int, part rules.Part) reader {
	return func(variable string) ([][]string, bool) { return v.ReadsOf(i, part, variable) }
}

// reaches reports whether a variable, or the member of that name below it, is read where it can hold a value.
func reaches(reads reader, variable, member string) bool {
	paths, whole := reads(variable)
	return whole || slices.ContainsFunc(paths, func(path []string) bool {
		if member == "" || len(path) == 0 {
			return redact.HoldsValues(path)
		}
		return path[0] == member && redact.HoldsValues(path[1:])
	})
}

func isSecretKind(gvk schema.GroupVersionKind) bool { return gvk.Group == "" && gvk.Kind == "Secret" }
