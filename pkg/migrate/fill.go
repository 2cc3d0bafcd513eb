package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// fill gives a field a value in the objects that lack it.
type fill struct {
	at    fieldpath.Path
	value *rules.Program
}

// fills compiles PATH=EXPRESSION against the schema of the stored version.
func fills(texts []string, v *kinds.Version) ([]fill, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	env, err := rules.NewEnv(rules.EnvOptions{Self: v.Schema})
	if err != nil {
		return nil, err
	}
	var made []fill
	var errs []error
	for _, text := range texts {
		f, err := compileFill(text, env, v)
		if err == nil && slices.ContainsFunc(made, func(other fill) bool { return other.at.Equal(f.at) }) {
			err = fmt.Errorf("another --fill sets %s: remove one of them", f.at)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--fill %s: %w", text, err))
			continue
		}
		made = append(made, f)
	}
	return made, errors.Join(errs...)
}

func compileFill(text string, env *rules.Env, v *kinds.Version) (fill, error) {
	path, expression, ok := strings.Cut(text, "=")
	if !ok {
		return fill{}, errors.New("it must be PATH=EXPRESSION, such as .spec.replicas=1")
	}
	at, err := fieldpath.Parse(path)
	if err != nil {
		return fill{}, err
	}
	if slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, at[0].Field) ||
		slices.ContainsFunc(at, func(s fieldpath.Step) bool { return s.Kind != fieldpath.FieldStep }) {
		return fill{}, fmt.Errorf("%s cannot be filled in: name a field of the spec, outside of lists", path)
	}
	field := kinds.Field(v.Structural, at)
	if field == nil {
		return fill{}, fmt.Errorf("version %s does not have %s", v.Name, path)
	}
	value, err := env.Any(expression, rules.Upstream, "")
	if err != nil {
		return fill{}, err
	}
	if made := value.Result(); made != nil && len(made.Type) == 1 && !takes(field, made.Type[0]) {
		return fill{}, fmt.Errorf("the expression makes a value of type %s, and %s is of type %s",
			made.Type[0], path, field.Type)
	}
	return fill{at, value}, nil
}

// takes reports whether a field may have values of a type.
func takes(field *structuralschema.Structural, made string) bool {
	switch field.Type {
	case made, "":
		return true
	case "number":
		return made == "integer"
	case "integer":
		return made == "number" // 2.0 is a whole number
	}
	return false
}

// values are what an object lacks, as a merge patch, and the object with them; nil where it lacks nothing.
func (p *Plan) values(ctx context.Context, u *unstructured.Unstructured) (patch, filled map[string]any, err error) {
	budget := rules.NewBudget(ctx)
	for _, f := range p.fills {
		if _, ok := fieldpath.Get(u.Object, f.at); ok {
			continue
		}
		if patch == nil {
			patch, filled = map[string]any{}, runtime.DeepCopyJSON(u.Object)
		}
		value, err := f.value.Eval(rules.Vars{Self: u.Object}, budget)
		if err == nil {
			// what is in the way must be an object: a patch would replace anything else
			err = fieldpath.Set(filled, f.at, value)
		}
		if err == nil {
			err = fieldpath.Set(patch, f.at, value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.at, err)
		}
	}
	return patch, filled, nil
}

// accepts returns an error if the stored version's schema does not accept an object with the values that it lacked.
func (p *Plan) accepts(ctx context.Context, old, filled map[string]any) error {
	if unknown := p.version.Coerce(filled); len(unknown) > 0 {
		return fmt.Errorf("version %s does not have %s", p.version.Name, strings.Join(unknown, ", "))
	}
	return p.version.ValidateWrite(ctx, filled, old, "", nil).ToAggregate()
}

// errorsShown is how many objects are named whose values cannot be computed.
const errorsShown = 10

// survey counts the objects that lack a field. An object for which an expression fails, or has a value that the schema
// refuses, is an error, before anything is written.
func (m *Migration) survey(ctx context.Context, p *Plan) error {
	if len(p.fills) == 0 {
		return nil
	}
	var errs []error
	failed := 0
	err := m.each(ctx, p, func(u *unstructured.Unstructured, _ int64) error {
		patch, filled, err := p.values(ctx, u)
		if patch != nil {
			p.Lacking++
			err = p.accepts(ctx, u.Object, filled)
		}
		if err == nil {
			return nil
		}
		if failed++; failed <= errorsShown {
			errs = append(errs, fmt.Errorf("%s/%s: %w", u.GetNamespace(), u.GetName(), err))
		}
		return nil
	})
	if failed > errorsShown {
		errs = append(errs, fmt.Errorf("and %d more objects", failed-errorsShown))
	}
	return errors.Join(append(errs, err)...)
}

// fill writes what an object lacks, and returns the object as it is then. It returns whether it was written.
func (m *Migration) fill(
	ctx context.Context, p *Plan, u *unstructured.Unstructured,
) (*unstructured.Unstructured, bool, error) {
	for try := 0; ; try++ {
		patch, _, err := p.values(ctx, u)
		if patch == nil || err != nil {
			return u, false, err
		}
		patch["metadata"] = map[string]any{"uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion()}
		text, err := json.Marshal(patch)
		if err != nil {
			return u, false, err
		}
		objects := m.Client.Resource(p.resource).Namespace(u.GetNamespace())
		written, err := objects.Patch(ctx, u.GetName(), types.MergePatchType, text,
			metav1.PatchOptions{FieldManager: m.FieldManager, FieldValidation: metav1.FieldValidationStrict})
		if !apierrors.IsConflict(err) || try >= tries {
			if err != nil {
				return u, false, err
			}
			return written, true, nil
		}
		newer, err := objects.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return u, false, err
		}
		u = newer
	}
}
