package cli

import (
	"errors"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/convert"
)

// TestCertificateOfAnEarlierProof: a certificate of a release that proved less is not enough, but what it allowed is served until the
// conversion is proven again.
func TestCertificateOfAnEarlierProof(t *testing.T) {
	t.Parallel()
	dir := "../../examples/conversions/crontab/"
	files, errs := config.LoadConversions(config.Options{Files: []string{dir + "conversion.yaml", dir + "certificate.yaml"}}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(dir + "crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	c, problems := compileConversion(files[0], crd, true)
	if len(problems) > 0 || c.matches() != nil {
		t.Fatal(problems, c.matches())
	}
	files[0].Certificate.Values["proof"] = 0
	if err := c.matches(); !errors.Is(err, convert.ErrProof) {
		t.Errorf("a certificate without a version of the proof: %v", err)
	}
	if err := c.proven(t.Context()); err != nil {
		t.Errorf("it is not proven again: %v", err)
	}
	if provenBefore(files[0], crd) == nil {
		t.Error("what was proven before is not served any more")
	}
}
