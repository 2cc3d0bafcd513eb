package compile

import (
	"fmt"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/render/holes"
)

// reportUndeclared refuses fields that a template reads and that are never there, since an API server drops what the
// schema of a kind does not declare. It warns of those that rendering does not need.
func reportUndeclared(c *compilation, d *downstream, w *check.Walked) {
	for _, found := range w.Findings {
		if wrong := d.source.problem(found.Line, found.Problem, ""); found.Unsure {
			c.warn(wrong)
		} else {
			c.addOnce(&wrong)
		}
	}
}

// reportRefused files what is wrong with the documents of a template.
func reportRefused(c *compilation, d *downstream, documents *check.Documents) {
	for _, found := range documents.Findings() {
		e := d.source.problem(found.Line, found.Problem, found.Fix)
		if found.Other > 0 {
			_, other := d.source.at(found.Other)
			e.Problem += fmt.Sprintf(", the other in line %d", other)
		}
		switch {
		case c.reported(e):
		case found.Unsure:
			c.warn(e)
		default:
			c.refusals = append(c.refusals, e)
		}
	}
}

// checkFields holds what the author of a template has written to what a template may set, in the place of a
// RenderFailed for each upstream. What is set on some paths through the template only is warned of: those may never be
// taken.
func checkFields(c *compilation, d *downstream) {
	for _, f := range d.template.Fields {
		found := findingOf(c.p.Settings, d, f)
		if found == nil || f.Optional {
			continue
		}
		e := d.source.problem(f.Line, found.Problem, found.Fix)
		if f.Always && !found.Unsure {
			c.errs = append(c.errs, &e)
		} else {
			c.warn(e)
		}
	}
}

func findingOf(s *operator.Settings, d *downstream, f holes.Field) *check.Finding {
	at := strings.Join(f.Path, ".")
	set := at + " is set"
	if f.Constant {
		set = fmt.Sprintf("%s is set to %s", at, desired.InYAML(f.Value))
	}
	switch {
	case at == "apiVersion":
		return contradicts(at, f, d.Config.APIVersion)
	case at == "kind":
		return contradicts(at, f, d.Config.Kind)
	case at == "status":
		return &check.Finding{Problem: set, Fix: "leave it out: it belongs to the controller of the " + d.Config.Kind}
	case f.Path[0] != "metadata" || len(f.Path) == 1:
		return nil
	case len(f.Path) == 3:
		return notText(f)
	case !slices.Contains(desired.AllowedMetadata, f.Path[1]):
		return &check.Finding{Problem: set, Fix: "leave it out: a template may set " +
			strings.Join(desired.AllowedMetadata, ", ") + " there and nothing else"}
	case at == "metadata.namespace":
		return namespaceFinding(s, d, f)
	}
	name, isText := f.Value.(string)
	if problems := desired.NameProblems(d.GVK().GroupKind(), name); at == "metadata.name" && isText && len(problems) > 0 {
		return &check.Finding{Problem: fmt.Sprintf("metadata.name %q is not a valid name for a %s", name, d.Config.Kind),
			Fix: strings.Join(problems, "; ")}
	}
	return nil
}

// contradicts is about apiVersion and kind, which a template may repeat.
func contradicts(at string, f holes.Field, want string) *check.Finding {
	if !f.Constant || f.Value == want {
		return nil
	}
	return &check.Finding{Problem: fmt.Sprintf("%s is %s, the config says %s", at, desired.InYAML(f.Value), want),
		Fix: "write what the config says, or leave it out"}
}

// notText is about the values of labels and annotations.
func notText(f holes.Field) *check.Finding {
	if _, isText := f.Value.(string); !f.Constant || isText || f.Path[1] != "labels" && f.Path[1] != "annotations" {
		return nil
	}
	return &check.Finding{Problem: fmt.Sprintf("metadata.%s[%s] is %s, not a string", f.Path[1], f.Path[2],
		desired.InYAML(f.Value)), Fix: "quote it"}
}

// namespaceFinding holds a namespace to the scope of the kind and to targetNamespaces.
func namespaceFinding(s *operator.Settings, d *downstream, f holes.Field) *check.Finding {
	asked, _ := f.Value.(string)
	if f.Constant && asked == "" {
		return nil // as good as left out
	}
	if !d.Kind.Namespaced {
		problem := "metadata.namespace is set"
		if f.Constant {
			problem = fmt.Sprintf("metadata.namespace is %q", asked)
		}
		return &check.Finding{Problem: fmt.Sprintf("%s, but a %s has none", problem, d.Config.Kind),
			Fix: "leave it out", Unsure: !f.Constant}
	}
	if !f.Constant {
		return nil
	}
	allowed, watched := d.Config.TargetNamespaces, s.Config.Watch.Namespaces
	problems := utilvalidation.IsDNS1123Label(asked)
	switch {
	case len(problems) > 0:
		return &check.Finding{Problem: fmt.Sprintf("metadata.namespace is %q", asked), Fix: strings.Join(problems, "; ")}
	case allowed.From == config.NamespacesList && !slices.Contains(allowed.Names, asked):
		return &check.Finding{Problem: fmt.Sprintf("namespace %q is not allowed: targetNamespaces lists %s", asked,
			strings.Join(allowed.Names, ", ")),
			Fix: "add it there, or name one of them"}
	case allowed.From == config.NamespacesSame && (s.Upstream.Namespaced || s.UpstreamIsNamespace()) &&
		!slices.Equal(watched, []string{asked}):
		return &check.Finding{Problem: fmt.Sprintf(
			"namespace %q is not allowed to upstreams of other namespaces: targetNamespaces is Same", asked),
			Fix: "leave it out, or set targetNamespaces: {from: List} with names", Unsure: len(watched) == 0 ||
				slices.Contains(watched, asked)}
	}
	return nil
}
