package migrate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// union is the set of fields that either entry has. An entry that cannot be read gives way to the other.
func union(a, b *metav1.FieldsV1) *metav1.FieldsV1 {
	var left, right fieldpath.Set
	if a == nil || left.FromJSON(a.GetRawReader()) != nil {
		return b
	}
	if b == nil || right.FromJSON(b.GetRawReader()) != nil {
		return a
	}
	text, err := left.Union(&right).ToJSON()
	if err != nil {
		return a
	}
	return metav1.NewFieldsV1(string(text))
}
