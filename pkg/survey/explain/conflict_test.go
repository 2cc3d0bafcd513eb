package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestHoldersOf(t *testing.T) {
	at := func(manager, subresource string, minute int) metav1.ManagedFieldsEntry {
		written := metav1.NewTime(time.Date(2025, 1, 1, 0, minute, 0, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &written}
	}
	for _, c := range []struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		owners  []metav1.OwnerReference
		want    []string
	}{
		{"the last to write is the one to ask first", []metav1.ManagedFieldsEntry{at("helm", "", 1), at("kubectl-edit", "", 2)}, nil,
			[]string{"was written by kubectl-edit, helm"}},
		{"who applies and updates is one", []metav1.ManagedFieldsEntry{at("helm", "", 2), at("helm", "", 1)}, nil,
			[]string{"was written by helm"}},
		{"a status is its controller's, whosever the object is", []metav1.ManagedFieldsEntry{at("kube-controller-manager", "status", 3),
			at("helm", "", 1)}, nil, []string{"was written by helm"}},
		{"the API server may be configured not to tell", nil, nil, nil},
		{"an owner makes it again, and may have the name of one that is gone", nil,
			[]metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "up-0"}},
			[]string{"is owned by Deployment web (uid up-0)"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetManagedFields(c.entries)
			object.SetOwnerReferences(c.owners)
			if diff := cmp.Diff(c.want, holdersOf(object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
