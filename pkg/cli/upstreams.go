package cli

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// upstream is a custom resource and where it was read.
type upstream struct {
	object *unstructured.Unstructured
	where  string
}

// String is how errors name it: file, kind and name.
func (u upstream) String() string {
	name := u.object.GetName()
	if name == "" {
		return u.where + ": " + u.object.GetKind() // a row, before it is known what identifies it
	}
	if ns := u.object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Sprintf("%s: %s %s", u.where, u.object.GetKind(), name)
}
