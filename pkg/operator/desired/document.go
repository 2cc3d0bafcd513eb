package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/values"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// document renders one downstream and adds conventions, marks and hash. Its errors quote no value of a Secret.
func (r *Renderer) document(
	d *Downstream, upstream *unstructured.Unstructured, in Inputs,
) (*operator.DesiredObject, error) {
	w, err := r.rendered(d, upstream, in)
	var missing *operator.WaitingError
	switch {
	case errors.As(err, &missing):
		return nil, missing
	case err != nil:
		return nil, redact.Hide(d.HidesValues, redact.Errorf("rendering %s: %w", d.Name, err))
	}
	return w, nil
}

func (r *Renderer) rendered(
	d *Downstream, upstream *unstructured.Unstructured, in Inputs,
) (*operator.DesiredObject, error) {
	values, lacking := r.valuesOf(r.VarsOf(upstream, in), in.rules), error(nil)
	data := program.Data{Upstream: upstream.Object, Params: r.Params, Inputs: in.objects,
		Item: in.item, Budget: in.renderBudget(),
		Variables: func(name string) (any, error) {
			value, err := values(name)
			if err != nil && lacking == nil {
				lacking = d.lacksField(err)
			}
			return value, err
		}}
	doc, err := d.Template.Execute(data)
	var e *parsing.Error
	var missing *operator.WaitingError
	switch {
	case errors.As(lacking, &missing):
		return nil, missing
	case errors.As(err, &e) && e.Input != "":
		return nil, &operator.WaitingError{Message: fmt.Sprintf("%s exists, but %s", e.Input, e.Problem)}
	case err != nil:
		return nil, err
	}
	w := &operator.DesiredObject{Wanted: true}
	if w.Target, err = targetOf(r.Settings, d, upstream, doc); err != nil {
		return nil, err
	}
	marks.Drop(r.Settings, doc)
	if err := addConventions(d, data, doc); err != nil {
		return nil, err
	}
	if doc, err = canonical.FormWithNulls(doc); err != nil {
		return nil, err
	}
	d.Kind.DropNulls(doc)
	if err := kinds.CheckNumbers(doc, d.Kind.Schema); err != nil {
		return nil, err
	}
	if err := generated.MakeRoom(d.Downstream, doc); err != nil {
		return nil, err
	}
	w.Hash = generated.HashOf(d.Downstream, d.HashPrefix+canonical.Hash(r.Algorithm,
		fieldpath.Without(doc, d.View.Initial)), in.item)
	w.UnnamedItem = d.HasGenerated() && generated.IsUnnamed(in.item)
	w.Reference = marks.ReferenceLegal(r.Settings, d.Downstream, upstream.GetNamespace(), w.Target)
	marks.Put(r.Settings, doc, upstream, w)
	w.Document, w.Secret = doc, generated.SecretKeys(d.Downstream, doc)
	w.Sum = drift.Desired(doc, &d.View)
	return w, nil
}

// targetOf checks what the template says of identity, completes it in place, and returns where the object shall stand.
func targetOf(
	s *operator.Settings, d *Downstream, upstream *unstructured.Unstructured, doc map[string]any,
) (operator.Ref, error) {
	for _, own := range []struct{ key, want string }{{"apiVersion", d.Config.APIVersion}, {"kind", d.Config.Kind}} {
		if have, ok := doc[own.key]; ok && have != own.want {
			return operator.Ref{}, redact.Errorf("%s is %v, the config says %s: write what the config says, or leave it out",
				own.key, InYAML(have), own.want)
		}
		doc[own.key] = own.want
	}
	if _, ok := doc["status"]; ok {
		return operator.Ref{},
			redact.Errorf("status is set: leave it out, it belongs to the controller of the %s", d.Config.Kind)
	}
	meta, ok := doc["metadata"].(map[string]any)
	if !ok {
		return operator.Ref{}, redact.Errorf("metadata is missing: a %s needs a name", d.Config.Kind)
	}
	if err := checkMetadata(meta); err != nil {
		return operator.Ref{}, err
	}
	namespace, err := namespaceOf(s, d, upstream, meta)
	if err != nil {
		return operator.Ref{}, err
	}
	name, _ := meta["name"].(string)
	if name == "" {
		return operator.Ref{}, redact.Errorf("metadata.name is not set: a %s needs a name", d.Config.Kind)
	}
	if problems := NameProblems(d.GVK().GroupKind(), name); len(problems) > 0 {
		return operator.Ref{}, redact.Errorf("metadata.name %q is not a valid name for a %s: %s", name, d.Config.Kind,
			strings.Join(problems, "; "))
	}
	return operator.Ref{Namespace: namespace, Name: name}, nil
}

// namespaceOf decides where the downstream is: an upstream chooses only among the namespaces that the config allows.
func namespaceOf(
	s *operator.Settings, d *Downstream, upstream *unstructured.Unstructured, meta map[string]any,
) (string, error) {
	asked, _ := meta["namespace"].(string)
	if !d.Kind.Namespaced {
		if asked != "" {
			return "", redact.Errorf("metadata.namespace is %q, but a %s has none: leave it out", asked, d.Config.Kind)
		}
		delete(meta, "namespace")
		return "", nil
	}
	own, allowed := ownNamespace(s, upstream), d.Config.TargetNamespaces
	if asked == "" && (upstream.GetNamespace() != "" || allowed.From == config.NamespacesSame) {
		asked = own
	}
	switch {
	case asked == "":
		return "", redact.Errorf(
			"metadata.namespace is missing: the upstream is cluster-scoped, so the template must set the namespace of the %s",
			d.Config.Kind)
	case allowed.From == config.NamespacesList && !slices.Contains(allowed.Names, asked):
		return "", redact.Errorf("namespace %q is not allowed: targetNamespaces lists %s", asked,
			strings.Join(allowed.Names, ", "))
	case allowed.From == config.NamespacesSame && upstream.GetNamespace() != "" && asked != own:
		return "", redact.Errorf("namespace %q is not allowed: targetNamespaces is Same, and the upstream is in %q", asked,
			own)
	case allowed.From == config.NamespacesSame && asked != own:
		return "", redact.Errorf("namespace %q is not allowed: targetNamespaces is Same and the upstream is "+
			"cluster-scoped: list the namespaces, or set Any", asked)
	}
	if problems := utilvalidation.IsDNS1123Label(asked); len(problems) > 0 {
		return "", redact.Errorf("metadata.namespace %q: %s", asked, strings.Join(problems, "; "))
	}
	meta["namespace"] = asked
	return asked, nil
}

// addConventions merges the config's labels and annotations over the template's: conventions win.
func addConventions(d *Downstream, data program.Data, doc map[string]any) error {
	meta := doc["metadata"].(map[string]any)
	for _, part := range []struct {
		key     string
		entries []TextEntry
	}{{"labels", d.Labels}, {"annotations", d.Annotations}} {
		if len(part.entries) == 0 {
			continue
		}
		merged := make(map[string]any, len(part.entries))
		for k, v := range operator.AsMap(meta[part.key]) {
			merged[k] = v
		}
		texts := make(map[string]string, len(part.entries))
		for _, e := range part.entries {
			s, err := e.Text.ExecuteText(data)
			if err != nil {
				return redact.Errorf("conventions.%s[%s]: %w", part.key, e.Key, err)
			}
			texts[e.Key], merged[e.Key] = s, s
		}
		if errs := checkTexts(part.key, texts); len(errs) > 0 {
			return redact.Errorf("conventions: %w", textErrors(errs))
		}
		meta[part.key] = merged
	}
	return nil
}

// Document returns the whole document to send for object k of w: what was hashed, and the fields that are set at
// creation only (drift.initialFields) as the live object wants them. live is nil at creation. Generated values are
// placeholders: see Downstream.Fill.
//
// in are the inputs that w was made with. Such a field is sent with its live value while our entry alone owns it
// (leaving it out would reset it) and left out once another manager owns it.
func (r *Renderer) Document(
	w *operator.Desired, k int, upstream *unstructured.Unstructured, in Inputs, live *drift.Live,
) (map[string]any, error) {
	d, doc := r.Downstreams[w.Objects[k].Downstream], w.Objects[k].Document
	if doc == nil {
		var err error
		if in, err = r.withSiblings(d, w.Of, in, nil); err != nil {
			return nil, err
		}
		if in.item, err = r.ItemAt(w, k, r.VarsOf(upstream, in), in, nil); err != nil {
			return nil, err
		}
		again, err := r.document(d, upstream, in)
		if err != nil {
			return nil, err
		}
		doc = again.Document
	}
	if len(d.View.Initial) == 0 {
		return doc, nil
	}
	if live != nil {
		doc = fieldpath.Without(doc, d.View.Initial)
		for i, at := range d.View.Initial[:len(d.View.Initial)-len(d.Generated)] {
			if f := live.Initial[i]; generated.SendsField(f) {
				if err := fieldpath.Set(doc, at, f.Value); err != nil {
					return nil, fmt.Errorf("rendering %s: keeping %s: %w", d.Name, at, err)
				}
			}
		}
	}
	return generated.WithPlaceholders(d.Downstream, doc, live), nil
}

// tookTooLong reports whether a template, or an expression with a budget of its own, got no time to end.
func tookTooLong(err error) bool {
	return errors.Is(err, values.ErrTime) || errors.Is(err, rules.ErrTime)
}
