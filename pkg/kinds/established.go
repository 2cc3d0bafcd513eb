package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Established reports whether an API server serves a CustomResourceDefinition. If not, why says which condition is
// False.
func Established(crd *unstructured.Unstructured) (_ bool, why string) {
	established := false
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, v := range conditions {
		switch condition, _ := v.(map[string]any); condition["status"] {
		case "True":
			established = established || condition["type"] == "Established"
		case "False":
			why += fmt.Sprintf(" (%s is False: %s)", condition["type"], condition["message"])
		}
	}
	return established, why
}
