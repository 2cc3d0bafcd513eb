package cli

import (
	"errors"
	"io"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/convert"
)

// A field of a kind has another name in another version.
const (
	movedDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
    - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
        properties: {spec: {type: object, properties: {a: {type: string}}}}}}}
    - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object,
        properties: {spec: {type: object, properties: {b: {type: string}}}}}}}
`
	movedConversion = `
apiVersion: corollary.dev/v1alpha1
kind: Conversion
metadata: {name: things}
for: {group: example.com, kind: Thing}
fieldManager: things
hub: v1
spokes: [{version: v1beta1, rules: [{move: .spec.a, to: .spec.b}]}]
`
)

// TestCertificateOfAnEarlierProof: a certificate of a release that proved less is not enough, but what it allowed is served until the
// conversion is proven again.
func TestCertificateOfAnEarlierProof(t *testing.T) {
	t.Parallel()
	dir, crd := t.TempDir()+"/", &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(movedDefinition), crd); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"crd": movedDefinition, "conversion": movedConversion} {
		if err := os.WriteFile(dir+name+".yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code := Main([]string{"convert", "prove", "-c", dir + "conversion.yaml", "--crds", dir + "crd.yaml", "--objects", "10",
		"-o", dir + "certificate.yaml"}, IO{Out: io.Discard, Err: os.Stderr}); code != 0 {
		t.Fatal(code)
	}
	files, errs := config.LoadConversions(config.Options{Files: []string{dir + "conversion.yaml", dir + "certificate.yaml"}}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
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
