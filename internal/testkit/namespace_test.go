package testkit

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestSlug(t *testing.T) {
	tests := []struct{ name, want, reason string }{
		{"TestApply", "testapply", "capitals"},
		{"TestApply/a_b, c/é", "testapply-a-b-c", "what a label cannot hold becomes one dash"},
		{"Test" + strings.Repeat("x", 100), "test" + strings.Repeat("x", maxSlug-4), "a long name is cut"},
		{"Test" + strings.Repeat("x", maxSlug-5) + "/y", "test" + strings.Repeat("x", maxSlug-5), "no dash at the end of a cut name"},
	}
	for _, test := range tests {
		if got := slug(test.name); got != test.want {
			t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
		}
	}
	if unique := Unique(t); len(validation.IsDNS1123Label(unique)) > 0 || unique == Unique(t) {
		t.Errorf("%s is no unique DNS label", unique)
	}
}
