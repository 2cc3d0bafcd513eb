package memcluster

import (
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
)

// form is how a client asks for objects: as they are, as a table, or only their metadata.
type form struct {
	call  *call
	table *metav1.TableOptions // nil: not as a table
}

// form parses what the client accepts. Where there is no table for a kind, and the client accepts JSON as well, it is
// JSON, as from an older API server.
func (c *call) form() (*form, error) {
	f := &form{call: c}
	if !strings.Contains(c.http.Header.Get("Accept"), ";as=Table;") || !c.resource.HasTable() {
		return f, nil
	}
	f.table = &metav1.TableOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(c.query, metav1.SchemeGroupVersion, f.table); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return f, nil
}

// of returns an object or a list in the form; a Status as it is.
func (f *form) of(answer any) (any, error) {
	if f.table == nil {
		return answers.InRequestedForm(f.call.http, answer), nil
	}
	var shown runtime.Object
	switch answer := answer.(type) {
	case *unstructured.Unstructured:
		shown = answer
	case *answers.List:
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(answer.APIVersion)
		list.SetKind(answer.Kind)
		list.SetResourceVersion(answer.Metadata.ResourceVersion)
		list.SetRemainingItemCount(answer.Metadata.RemainingItemCount)
		if next := answer.Metadata.Continue; next != nil {
			list.SetContinue(*next)
		}
		for _, item := range answer.Items {
			list.Items = append(list.Items, unstructured.Unstructured{Object: item})
		}
		shown = list
	default:
		return answer, nil
	}
	return f.call.resource.Table(f.call.http.Context(), shown, f.table)
}

// event returns the object of a watch's event in the form. Only the first table has the columns.
func (f *form) event(object map[string]any) any {
	if f.table == nil {
		return answers.InRequestedForm(f.call.http, &unstructured.Unstructured{Object: object})
	}
	shown, err := f.of(&unstructured.Unstructured{Object: maps.Clone(object)})
	if err != nil {
		return answers.StatusOf(err)
	}
	f.table.NoHeaders = true
	return shown
}
