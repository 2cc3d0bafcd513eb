package conversions

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// followed is how long after a change of spec.conversion every API server is taken to follow it. Each has an informer
// for definitions, which lags by milliseconds, or by seconds after its connection to etcd was interrupted.
const followed = 10 * time.Second

// sighting is when this process first saw a generation of a definition.
type sighting struct {
	generation int64
	at         time.Time
}

// Unconverted says why objects of a resource must not be read or written yet in the version that a config has: one of
// the configs converts the kind, and API servers do not ask the webhook (any more), or may not yet. Until then an
// object that is stored in another version appears without the fields that only that one has, and each write drops
// them. It is empty where nothing is to be converted. It may be called at any time.
func (s *Source) Unconverted(ctx context.Context, r schema.GroupResource) (why string, err error) {
	var beside []*load.ConversionFile
	for _, f := range s.loaded.Load().files {
		if f.For.Group == r.Group {
			beside = append(beside, f)
		}
	}
	if len(beside) == 0 {
		return "", nil
	}
	crd, err := kinds.ReadDefinition(ctx, s.Client, r.String())
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("whether API servers convert %s is not known: grant get on CustomResourceDefinition %s (%v)",
			r, r, err), nil
	case err != nil:
		return "", err
	}
	for _, f := range beside {
		if f.For.Kind == crd.Spec.Names.Kind && len(crd.Spec.Versions) > 1 {
			return s.unpublished(crd, time.Now()), nil
		}
	}
	return "", nil
}

// unpublished says why API servers may not convert by a webhook; empty if they do.
func (s *Source) unpublished(crd *apiextensionsv1.CustomResourceDefinition, now time.Time) string {
	if c := crd.Spec.Conversion; c == nil || c.Strategy != apiextensionsv1.WebhookConverter {
		return fmt.Sprintf("CustomResourceDefinition %s: spec.conversion.strategy is None: waiting until the conversion of "+
			"the config is published, since without it objects lose the fields that only another version has", crd.Name)
	}
	known, _ := s.seen.Load(crd.Name)
	seen, _ := known.(sighting)
	if known == nil || seen.generation != crd.Generation {
		seen = sighting{crd.Generation, now}
		s.seen.Store(crd.Name, seen)
	}
	if age := max(now.Sub(seen.at), now.Sub(writtenAt(crd))); age < followed {
		return fmt.Sprintf("CustomResourceDefinition %s: spec.conversion was written just now: waiting %s for all API "+
			"servers to follow it", crd.Name, followed)
	}
	return ""
}

// writtenAt is when spec.conversion was written last, as managedFields say; now if they do not.
func writtenAt(crd *apiextensionsv1.CustomResourceDefinition) time.Time {
	at := time.Time{}
	for _, entry := range crd.ManagedFields {
		var set fieldpath.Set
		if entry.FieldsV1 == nil || entry.Time == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		if writesConversion(&set) && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	if at.IsZero() {
		return time.Now()
	}
	return at
}
