package discovered

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// namesOnly requests a list with metadata only, because definitions are large.
	namesOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// definition returns the name of the CustomResourceDefinition of a kind; empty for none. hidden means that the right to
// list definitions is missing. It reads the definitions of the group, because the plural of a kind that is not served
// is unknown.
func (c *Cluster) definition(ctx context.Context, kind schema.GroupKind) (name string, hidden bool, err error) {
	var names metav1.PartialObjectMetadataList
	err = c.definitions(ctx, namesOnly, "", &names)
	for _, item := range names.Items {
		if !strings.HasSuffix(item.Name, "."+kind.Group) {
			continue
		}
		var found apiextensionsv1.CustomResourceDefinitionList
		if err = c.definitions(ctx, "application/json", "metadata.name="+item.Name, &found); err != nil {
			break
		}
		for i := range found.Items {
			if spec := found.Items[i].Spec; spec.Group == kind.Group && spec.Names.Kind == kind.Kind {
				return item.Name, false, nil
			}
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return "", true, nil
	case apierrors.IsNotFound(err): // an API server without the API has no definitions
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("asking the API server for the CustomResourceDefinition of %s: %w", kind, err)
	}
	return "", false, nil
}

func (c *Cluster) definitions(ctx context.Context, accept, fields string, into any) error {
	request := c.discovery.RESTClient().Get().AbsPath(definitionsPath).SetHeader("Accept", accept)
	if fields != "" {
		request.Param("fieldSelector", fields)
	}
	text, err := request.DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
