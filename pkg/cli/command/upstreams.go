package command

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Upstream is a custom resource and where it was read.
type Upstream struct {
	Object *unstructured.Unstructured
	Where  string
}

// String is how errors name it: file, kind and name.
func (u Upstream) String() string {
	name := u.Object.GetName()
	if name == "" {
		return u.Where + ": " + u.Object.GetKind() // a row, before it is known what identifies it
	}
	if ns := u.Object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Sprintf("%s: %s %s", u.Where, u.Object.GetKind(), name)
}
