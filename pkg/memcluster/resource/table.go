package resource

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ageColumn is the column of a definition that has none.
var ageColumn = apiextensionsv1.CustomResourceColumnDefinition{Name: "Age", Type: "date",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"}

// HasTable reports whether objects are shown as a table to a client that asks for one. The columns of the built-in
// kinds are code of the API server, so a client prints these by itself.
func (r *Resource) HasTable() bool { return r.Custom != nil }

// Table shows an object or a list in the columns of the kind's definition.
func (r *Resource) Table(
	ctx context.Context, shown runtime.Object, options *metav1.TableOptions,
) (*metav1.Table, error) {
	columns := r.columns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{ageColumn}
	}
	convertor, err := tableconvertor.New(columns)
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", r.GVK.Kind, err)
	}
	table, err := convertor.ConvertToTable(ctx, shown, options)
	if err != nil {
		return nil, err
	}
	table.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}
	for i := range table.Rows {
		row := &table.Rows[i].Object
		switch options.IncludeObject {
		case metav1.IncludeObject:
		case metav1.IncludeNone:
			row.Object = nil
		default:
			object, err := meta.Accessor(row.Object)
			if err != nil {
				return nil, err
			}
			partial := meta.AsPartialObjectMetadata(object)
			partial.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
			row.Object = partial
		}
	}
	return table, nil
}
