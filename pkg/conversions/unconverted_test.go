package conversions

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnpublished: a definition is followed some time after its conversion was written, as managedFields say or, for a
// clock that differs, since it was first seen.
func TestUnpublished(t *testing.T) {
	t.Parallel()
	now := time.Now()
	definition := func(strategy apiextensionsv1.ConversionStrategyType, written time.Time) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name, crd.Generation = "things.example.com", 1
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: strategy}
		crd.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "things", Time: &metav1.Time{Time: written}, FieldsV1: metav1.NewFieldsV1(
			`{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:url":{}}}}}}`)}}
		return crd
	}
	const none, webhook = apiextensionsv1.NoneConverter, apiextensionsv1.WebhookConverter
	for _, row := range []struct {
		name     string
		strategy apiextensionsv1.ConversionStrategyType
		written  time.Duration // before the first look
		want     [2]string     // at the first look, and after the time
	}{
		{"none", none, time.Hour, [2]string{"strategy is None", "strategy is None"}},
		{"long ago", webhook, time.Hour, [2]string{"", ""}},
		{"just now", webhook, 0, [2]string{"written just now", ""}},
		{"by a clock that is ahead", webhook, -time.Hour, [2]string{"written just now", ""}},
	} {
		s := &Source{}
		for i, at := range []time.Time{now, now.Add(followed)} {
			have := s.unpublished(definition(row.strategy, now.Add(-row.written)), at)
			if (have == "") != (row.want[i] == "") || !strings.Contains(have, row.want[i]) {
				t.Errorf("%s, look %d: %q, want %q", row.name, i+1, have, row.want[i])
			}
		}
	}
}
