package ownership

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Managers are the managedFields of an object with the version of the object in the place of those that leave. guessed:
// nothing converts the fields of some of them, so Guess did.
func (o *Ownership) Managers(ctx context.Context, u *unstructured.Unstructured,
	leaves func(metav1.ManagedFieldsEntry) bool,
) (made []metav1.ManagedFieldsEntry, guessed bool, err error) {
	entries := u.GetManagedFields()
	sets := make([]*fieldpath.Set, len(entries))
	for i, entry := range entries {
		sets[i] = fieldpath.NewSet()
		if entry.FieldsV1 == nil || sets[i].FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			sets[i] = fieldpath.NewSet() // the API server cannot read it either
		}
	}
	claimed := slices.Clone(sets)
	for i := range entries {
		if !leaves(entries[i]) {
			continue
		}
		gv, _ := schema.ParseGroupVersion(entries[i].APIVersion)
		set, err := o.Convert(ctx, u, gv.Version, sets[i])
		if err != nil {
			guessed = true
			if set, err = o.Guess(u, sets[i], claimed); err != nil {
				return nil, false, err
			}
		}
		sets[i], entries[i].APIVersion = set, u.GetAPIVersion()
	}
	made, err = merged(entries, sets)
	return made, guessed, err
}

// merged are the entries with the fields of sets, one for each manager, operation, version and subresource.
func merged(entries []metav1.ManagedFieldsEntry, sets []*fieldpath.Set) (made []metav1.ManagedFieldsEntry, err error) {
	for i, entry := range entries {
		same := func(m metav1.ManagedFieldsEntry) bool {
			return m.Manager == entry.Manager && m.Operation == entry.Operation && m.APIVersion == entry.APIVersion &&
				m.Subresource == entry.Subresource
		}
		if slices.ContainsFunc(entries[:i], same) { // with the one before, which must not be there twice
			continue
		}
		for j := i + 1; j < len(entries); j++ {
			if same(entries[j]) {
				sets[i] = sets[i].Union(sets[j])
			}
		}
		if sets[i].Empty() {
			continue
		}
		text, err := sets[i].ToJSON()
		if err != nil {
			return nil, err
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		made = append(made, entry)
	}
	if made == nil {
		made = []metav1.ManagedFieldsEntry{{}} // which clears them
	}
	return made, nil
}
