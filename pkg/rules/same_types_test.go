package rules

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestSameTypes: objects with the same fields have the same type, and an error names the object in the expression.
func TestSameTypes(t *testing.T) {
	item := func() *spec.Schema {
		return objectSchema(map[string]*spec.Schema{"name": spec.StringProperty(), "port": spec.Int64Property()})
	}
	kind := func(more map[string]*spec.Schema) *spec.Schema {
		status := map[string]*spec.Schema{"ready": spec.BooleanProperty(), "ports": spec.ArrayProperty(item()),
			"hosts": spec.ArrayProperty(item())}
		for name, s := range more {
			status[name] = s
		}
		return objectSchema(map[string]*spec.Schema{"status": objectSchema(status)})
	}
	env, err := NewEnv(EnvOptions{Self: kind(nil), Downstreams: map[string]*spec.Schema{
		"blue": kind(nil), "green": kind(nil), "other": kind(map[string]*spec.Schema{"more": spec.StringProperty()}), "untyped": nil,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ reason, expr, want string }{
		{"two of one kind", "self.status.ready ? downstreams.blue.status : downstreams.green.status", ""},
		{"of the upstream's kind", "self.status.ready ? self.status : downstreams.green.status", ""},
		{"items of two lists", "self.status.ports + downstreams.other.status.hosts", ""},
		{"metadata of two kinds", "true ? downstreams.blue.metadata : downstreams.other.metadata", ""},
		{"one of them unknown", "true ? downstreams.blue.status : downstreams.untyped.status", ""},
		{"two kinds", "true ? downstreams.blue.status : downstreams.other.status", "write dyn(…) around one that differs"},
		{"as it says", "true ? dyn(downstreams.blue.status) : downstreams.other.status", ""},
		{"the object that is named", "downstreams.green.status.redy", "downstreams.green.status has no field redy: did you mean ready?"},
		{"an optional one", "downstreams.green.?status.redy.orValue(false)", "downstreams.green.status has no field redy"},
		{"an item", "downstreams.green.status.hosts[0].nme", "downstreams.green.status.hosts[…] has no field nme"},
		{"an item of a macro", "downstreams.green.status.hosts.all(h, h.nme == '')", "downstreams.green.status.hosts[…] has no field nme"},
		{"macros in each other", "self.status.ports.all(p, self.status.hosts.exists(h, h.nme == p.name))",
			"self.status.hosts[…] has no field nme"},
		{"macros whose variables have one name", "self.status.ports.all(h, self.status.hosts.exists(h, h.nme == ''))", "has no field nme"},
		{"a variable that a macro takes for itself", "x.all(x, x.y)", "x is not known here"},
	} {
		_, err := env.Any(row.expr, Status, "")
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %s: got %v, want %q", row.reason, row.expr, err, row.want)
		}
	}
}

func objectSchema(properties map[string]*spec.Schema) *spec.Schema {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
	for name, property := range properties {
		s.Properties[name] = *property
	}
	return s
}
