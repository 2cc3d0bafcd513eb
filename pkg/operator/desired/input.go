package desired

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// InputSource is one compiled input of a config.
type InputSource struct {
	Index  int
	Name   string
	Config *config.Input
	Kind   kinds.Kind
	// View is what the cache keeps of an input.
	View InputView

	// ObjectName is nil where the name is fixed.
	ObjectName *rules.Program
	// Matching is that of a list; nil: every object matches.
	Matching *rules.Program
	// HidesValues: errors of these two may quote a value of a Secret.
	HidesValues bool
}

// NameFor returns the name of the object of an upstream; empty if the upstream names none.
func (s *InputSource) NameFor(vars rules.Vars, budget *rules.Budget) (string, error) {
	if s.ObjectName == nil {
		return s.nameOf(s.Config.FixedName), nil
	}
	v, err := s.ObjectName.Eval(vars, budget)
	if err != nil {
		return "", redact.Errorf("evaluating objectName: %w", err)
	}
	name, _ := v.(string)
	if name == "" || s.HasRows() {
		return s.nameOf(name), nil
	}
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return "", redact.Errorf("objectName gives %q, which is not a valid name: %s", name, strings.Join(problems, "; "))
	}
	return name, nil
}

// nameOf is the name of the object that objectName or fixedName means: of a row they give the key.
func (s *InputSource) nameOf(text string) string {
	if s.HasRows() && text != "" {
		return RowName(text)
	}
	return text
}

// Selects returns the label selector of a list, which the API server applies.
func (s *InputSource) Selects() (labels.Selector, error) {
	if s.Config.List == nil || s.Config.List.LabelSelector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Config.List.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("reading list.labelSelector of input %s: %w", s.Name, err)
	}
	return selector, nil
}

// Shows reports whether the watch of a list shows an object of its kind, by its labels and namespace.
func (s *InputSource) Shows(u *unstructured.Unstructured) bool {
	selector, err := s.Selects()
	names := s.Config.List.Namespaces
	return err == nil && selector.Matches(labels.Set(u.GetLabels())) &&
		(len(names) == 0 || slices.Contains(s.Config.List.Namespaces, config.AllNamespaces) ||
			slices.Contains(names, u.GetNamespace()))
}

// HasRows reports whether the input is read from a database.
func (s *InputSource) HasRows() bool { return s.Config.SQL != nil }

// Row is a row of the input.
func (s *InputSource) Row(name string, columns map[string]any) *unstructured.Unstructured {
	u := newRow(s.Kind.GVK, name, s.Name+":"+name, columns)
	u.SetNamespace(s.Name)
	return u
}
