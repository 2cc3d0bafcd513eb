package healthchecks

import (
	"fmt"
	"strings"
)

// Flux is the entry for the kind in spec.healthCheckExprs of a Flux Kustomization: CEL over the object's top-level
// fields. Flux asks failed before current, and takes an object for which neither holds as in progress.
func (h Health) Flux() map[string]any {
	var failed, current []string
	for _, o := range h.Operators {
		failed = append(failed, o.failed())
		current = append(current, condition(o.Types.Ready, "True", ""))
	}
	return map[string]any{
		"apiVersion": h.Kind.GroupVersion().String(),
		"kind":       h.Kind.Kind,
		"failed":     strings.Join(failed, " || "),
		"current":    strings.Join(current, " && "),
	}
}

// failed is CEL that holds where an operator waits for someone to act.
func (o OperatorHealth) failed() string {
	if o.Types.Stalled != "" {
		return condition(o.Types.Stalled, "True", "")
	}
	return condition(o.Types.Ready, "False", " && c.reason in "+`["`+strings.Join(stalling, `", "`)+`"]`)
}

// condition is CEL that holds where the object has the condition, and that of the present generation. Some kinds of
// Kubernetes' own have no generation.
func condition(name, value, also string) string {
	return fmt.Sprintf("status.?conditions.orValue([]).exists(c, c.type == %q && c.status == %q"+
		" && c.?observedGeneration.or(metadata.?generation) == metadata.?generation%s)", name, value, also)
}
