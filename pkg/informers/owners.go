package informers

import (
	"cmp"
	"hash/maphash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// byOwner indexes downstreams by the buckets of the uids in their owner marks. An index takes hundreds of bytes for
// each of its values, and most owners have one object.
const byOwner = "owner"

// buckets is how many there are: each has a few of 100,000 objects. A search for those of one owner looks at all in its
// bucket.
const buckets = 1 << 14

var bucketSeed = maphash.MakeSeed()

// bucketOf is where objects of an owner are in byOwner, among some of others.
func bucketOf(uid string) string {
	sum := maphash.String(bucketSeed, uid) % buckets
	return string([]byte{byte(sum >> 8), byte(sum)})
}

var indexers = cache.Indexers{
	byOwner: func(obj any) ([]string, error) {
		live, ok := obj.(*drift.Live)
		if !ok {
			return nil, nil
		}
		uids := ownersOf(live)
		for i := range uids {
			uids[i] = bucketOf(uids[i])
		}
		return uids, nil
	},
	byBeforeOwner:  beforeOwners,
	kept.ByListing: kept.ListingsOf,
}

// ownersOf is marksOf(live).uids(), without the references in between: it is called for each object of an index or
// list.
func ownersOf(live *drift.Live) []string {
	uids := make([]string, 0, len(live.Owners)+1)
	for _, ref := range live.Owners {
		uids = append(uids, string(ref.UID))
	}
	if _, uid, ok := marks.ParseOwnerMark(live.OwnerMark); ok {
		uids = append(uids, uid)
	}
	return uids
}

// isOwnedBy reports whether ownersOf has a uid.
func isOwnedBy(live *drift.Live, uid types.UID) bool {
	if slices.ContainsFunc(live.Owners, func(ref drift.OwnerRef) bool { return ref.UID == uid }) {
		return true
	}
	_, marked, ok := marks.ParseOwnerMark(live.OwnerMark)
	return ok && marked == string(uid)
}

// ownerMarks are those of a downstream.
type ownerMarks struct {
	references []metav1.OwnerReference
	annotation string
}

// marksOf are the owner marks of a downstream, as an API server sends it or as the cache has it; none of an upstream,
// which has no view.
func marksOf(obj runtime.Object, view *drift.View) (m ownerMarks) {
	switch o := obj.(type) {
	case *drift.Live:
		m.references, m.annotation = o.GetOwnerReferences(), o.OwnerMark
	case *unstructured.Unstructured:
		if view != nil {
			m.references = o.GetOwnerReferences()
			m.annotation = cmp.Or(o.GetAnnotations()[view.OwnerAnnotation], o.GetAnnotations()[view.Previous.OwnerAnnotation])
		}
	}
	return m
}

// uids are those of the owners.
func (m ownerMarks) uids() (uids []string) {
	for _, ref := range m.references {
		uids = append(uids, string(ref.UID))
	}
	if _, uid, ok := marks.ParseOwnerMark(m.annotation); ok {
		uids = append(uids, uid)
	}
	return uids
}
