package pipeline

import (
	"fmt"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/render"
)

// finding is what is wrong with a field of a template, as far as that can be known without an upstream.
type finding struct {
	problem, fix string
	// unsure says that some upstream may make it right.
	unsure bool
	// other is another line that has a part in it; 0 if there is none.
	other int
}

// fields holds what the author of a template has written to what a template may set, in the place of a RenderFailed for
// each upstream. What stands on some paths through the template only is warned of: those may never be taken.
func (c *compiler) fields(d *Downstream) {
	for _, f := range d.template.Fields() {
		found := c.finding(d, f)
		if found == nil || f.Optional {
			continue
		}
		e := d.source.problem(f.Line, found.problem, found.fix)
		if f.Always && !found.unsure {
			c.errs = append(c.errs, &e)
		} else {
			c.warn(e)
		}
	}
}

func (c *compiler) finding(d *Downstream, f render.Field) *finding {
	at := strings.Join(f.Path, ".")
	set := at + " is set"
	if f.Constant {
		set = fmt.Sprintf("%s is set to %s", at, inYAML(f.Value))
	}
	switch {
	case at == "apiVersion":
		return contradicts(at, f, d.Config.APIVersion)
	case at == "kind":
		return contradicts(at, f, d.Config.Kind)
	case at == "status":
		return &finding{problem: set, fix: "leave it out: it belongs to the controller of the " + d.Config.Kind}
	case f.Path[0] != "metadata" || len(f.Path) == 1:
		return nil
	case len(f.Path) == 3:
		return notText(f)
	case !slices.Contains(allowedMetadata, f.Path[1]):
		return &finding{problem: set, fix: "leave it out: a template may set " + strings.Join(allowedMetadata, ", ") + " there and nothing else"}
	case at == "metadata.namespace":
		return c.namespaceFinding(d, f)
	}
	name, isText := f.Value.(string)
	if problems := nameProblems(d, name); at == "metadata.name" && isText && len(problems) > 0 {
		return &finding{problem: fmt.Sprintf("metadata.name %q is not a valid name for a %s", name, d.Config.Kind), fix: strings.Join(problems, "; ")}
	}
	return nil
}

// contradicts is about apiVersion and kind, which a template may repeat.
func contradicts(at string, f render.Field, want string) *finding {
	if !f.Constant || f.Value == want {
		return nil
	}
	return &finding{problem: fmt.Sprintf("%s is %s, the config says %s", at, inYAML(f.Value), want), fix: "write what the config says, or leave it out"}
}

// notText is about the values of labels and annotations.
func notText(f render.Field) *finding {
	if _, isText := f.Value.(string); !f.Constant || isText || f.Path[1] != "labels" && f.Path[1] != "annotations" {
		return nil
	}
	return &finding{problem: fmt.Sprintf("metadata.%s[%s] is %s, not a string", f.Path[1], f.Path[2], inYAML(f.Value)), fix: "quote it"}
}

// inYAML is a scalar as its author knows it.
func inYAML(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

// namespaceFinding holds a namespace to the scope of the kind and to targetNamespaces.
func (c *compiler) namespaceFinding(d *Downstream, f render.Field) *finding {
	asked, _ := f.Value.(string)
	if f.Constant && asked == "" {
		return nil // as good as left out
	}
	if !d.Kind.Namespaced {
		problem := "metadata.namespace is set"
		if f.Constant {
			problem = fmt.Sprintf("metadata.namespace is %q", asked)
		}
		return &finding{problem: fmt.Sprintf("%s, but a %s has none", problem, d.Config.Kind), fix: "leave it out", unsure: !f.Constant}
	}
	if !f.Constant {
		return nil
	}
	allowed, watched := d.Config.TargetNamespaces, c.file.Operator.Watch.Namespaces
	problems := utilvalidation.IsDNS1123Label(asked)
	switch {
	case len(problems) > 0:
		return &finding{problem: fmt.Sprintf("metadata.namespace is %q", asked), fix: strings.Join(problems, "; ")}
	case allowed.From == config.NamespacesList && !slices.Contains(allowed.Names, asked):
		return &finding{problem: fmt.Sprintf("namespace %q is not allowed: targetNamespaces lists %s", asked, strings.Join(allowed.Names, ", ")),
			fix: "add it there, or name one of them"}
	case allowed.From == config.NamespacesSame && (c.p.Upstream.Namespaced || c.p.upstreamIsNamespace()) && !slices.Equal(watched, []string{asked}):
		return &finding{problem: fmt.Sprintf("namespace %q is not allowed to upstreams of other namespaces: targetNamespaces is Same", asked),
			fix: "leave it out, or set targetNamespaces: {from: List} with names", unsure: len(watched) == 0 || slices.Contains(watched, asked)}
	}
	return nil
}
