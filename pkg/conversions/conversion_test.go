package conversions

import (
	"errors"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
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

// TestCertificateOfAnEarlierProof: a certificate of a release that proved less is not enough, but what it allowed is
// served until the conversion is proven again.
func TestCertificateOfAnEarlierProof(t *testing.T) {
	t.Parallel()
	dir, crd := t.TempDir()+"/", &apiextensionsv1.CustomResourceDefinition{}
	must.Do(t, yaml.Unmarshal([]byte(movedDefinition), crd))
	load := func() []*load.ConversionFile {
		files, errs := load.Conversions(load.Options{Files: []string{dir}}, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return files
	}
	write(t, dir+"conversion.yaml", movedConversion)
	c, problems := Compile(load()[0], crd, true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	proof, err := prove.Prove(t.Context(), c.Converter, prove.Options{Seed: 1, Objects: 10})
	if err != nil || !proof.Valid() {
		t.Fatal(proof, err)
	}
	certificate := prove.Certify(c.Converter, &c.File.Conversion, proof, 1)
	must.Do(t, certificate.Record(crd))
	text := must.Get(yaml.Marshal(certificate)).In(t)
	write(t, dir+"certificate.yaml", string(text))
	files := load()
	if c, problems = Compile(files[0], crd, true); len(problems) > 0 || c.Matches() != nil {
		t.Fatal(problems, c.Matches())
	}
	files[0].Certificate.Values["proof"] = 0
	if err := c.Matches(); !errors.Is(err, prove.ErrProof) {
		t.Errorf("a certificate without a version of the proof: %v", err)
	}
	if err := c.Proven(t.Context()); err != nil {
		t.Errorf("it is not proven again: %v", err)
	}
	if provenBefore(files[0], crd) == nil {
		t.Error("what was proven before is not served any more")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}
