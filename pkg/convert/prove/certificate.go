package prove

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Certificate says that a conversion was proven against the schemas of its versions. It is good for these very rules
// and schemas.
type Certificate struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Of is the kind that is converted, KIND.GROUP.
	Of string `json:"of"`
	// Proof is the version of the proof: a later one may refuse what an earlier one accepted.
	Proof int `json:"proof"`
	// Rules is the digest of the conversion, Schemas are those of the versions' schemas.
	Rules   string            `json:"rules"`
	Schemas map[string]string `json:"schemas"`
	Seed    uint64            `json:"seed"`
	Pairs   []CertifiedPair   `json:"pairs"`
	// Lost are the losses that the conversion acknowledges.
	Lost []CertifiedLoss `json:"lost,omitempty"`
	// Definition has the schemas themselves, compressed: with them the same conversion can be served after one of them has
	// changed.
	Definition string `json:"definition,omitempty"`
}

// CertifiedPair is one way there and back.
type CertifiedPair struct {
	From           string `json:"from"`
	Via            string `json:"via"`
	ByConstruction bool   `json:"byConstruction,omitempty"`
	Objects        int    `json:"objects"`
	Combinations   int    `json:"combinations"`
	// Kept are the fields that survive by the annotation of preserve only, with how many of the objects.
	Kept map[string]int `json:"kept,omitempty"`
	// Lost are the fields that were lost as acknowledged, with in how many of the objects.
	Lost map[string]int `json:"lost,omitempty"`
}

// CertifiedLoss is an acknowledged loss.
type CertifiedLoss struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	Reason  string `json:"reason"`
}

// proofVersion is increased when Prove refuses a conversion that it accepted before.
const proofVersion = 1

// Certify states what was proven.
func Certify(c *convert.Converter, conf *conversion.Conversion, proof *Proof, seed uint64) *Certificate {
	made := &Certificate{
		APIVersion: config.APIVersion,
		Kind:       conversion.CertificateKind,
		Of:         c.Kind.String(),
		Proof:      proofVersion,
		Rules:      rulesDigest(conf),
		Schemas:    digests(c),
		Seed:       seed,
	}
	for _, pair := range proof.Pairs {
		made.Pairs = append(made.Pairs, CertifiedPair{
			From: pair.From, Via: pair.Via, ByConstruction: pair.ByConstruction, Objects: pair.Objects,
			Combinations: pair.Combinations,
			Kept:         pair.Kept, Lost: pair.Lost,
		})
	}
	for _, s := range conf.Spokes {
		for _, lost := range s.Lost {
			made.Lost = append(made.Lost, CertifiedLoss{Version: s.Version, Path: lost.Path, Reason: lost.Reason})
		}
	}
	return made
}

func digests(c *convert.Converter) map[string]string {
	all := map[string]string{c.Hub.Name: schemaDigest(c.Hub)}
	for name, s := range c.Spokes {
		all[name] = schemaDigest(s.Version)
	}
	return all
}

// ErrSchemas says that a conversion was proven against other schemas than the current ones.
var ErrSchemas = errors.New("it has changed since the conversion was proven")

// ErrProof says that a conversion was proven against the current schemas by a release that proved less.
var ErrProof = errors.New("it was proven by a release that proved less")

// Matches returns nil if a certificate is about this conversion of these schemas. Otherwise the error says what has
// changed; it is ErrSchemas or ErrProof where the conversion itself is the one that was proven.
func Matches(c *convert.Converter, conf *conversion.Conversion, certificate *Certificate) error {
	if certificate.Of != c.Kind.String() {
		return fmt.Errorf("the certificate is about %s, not about %s", certificate.Of, c.Kind)
	}
	if certificate.Rules != rulesDigest(conf) {
		return errors.New("the conversion has changed since it was proven")
	}
	now := digests(c)
	for _, version := range slices.Sorted(maps.Keys(now)) {
		if certificate.Schemas[version] != now[version] {
			return fmt.Errorf("the schema of version %s: %w", version, ErrSchemas)
		}
	}
	if certificate.Proof < proofVersion {
		return ErrProof
	}
	return nil
}

// Record puts the schemas of a definition into the certificate that was made for it.
func (c *Certificate) Record(crd *apiextensionsv1.CustomResourceDefinition) error {
	schemas := map[string]*apiextensionsv1.CustomResourceValidation{}
	for _, v := range crd.Spec.Versions {
		if c.Schemas[v.Name] != "" {
			schemas[v.Name] = v.Schema
		}
	}
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	if err := errors.Join(json.NewEncoder(packed).Encode(schemas), packed.Close()); err != nil {
		return fmt.Errorf("recording the schemas: %w", err)
	}
	c.Definition = base64.StdEncoding.EncodeToString(text.Bytes())
	return nil
}

// maxRecorded bounds the recorded schemas: etcd stores no definition that is larger.
const maxRecorded = 8 << 20

// Recorded is a definition with the schemas for which the certificate was made; nil where it does not have them.
// Matches reports whether they are these.
func (c *Certificate) Recorded(
	crd *apiextensionsv1.CustomResourceDefinition,
) *apiextensionsv1.CustomResourceDefinition {
	text, err := base64.StdEncoding.DecodeString(c.Definition)
	if err != nil {
		return nil
	}
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	var schemas map[string]*apiextensionsv1.CustomResourceValidation
	if json.NewDecoder(io.LimitReader(packed, maxRecorded)).Decode(&schemas) != nil {
		return nil
	}
	earlier := crd.DeepCopy()
	for i := range earlier.Spec.Versions {
		if v := &earlier.Spec.Versions[i]; schemas[v.Name] != nil {
			v.Schema = schemas[v.Name]
		}
	}
	return earlier
}

// rulesDigest is over what decides how objects are converted.
func rulesDigest(conf *conversion.Conversion) string {
	rules := *conf
	rules.Publish, rules.Migrate = "", ""
	return digest(&rules)
}

func schemaDigest(v *kinds.Version) string { return digest(v.Structural.ToKubeOpenAPI()) }

// digest is over JSON, whose keys Go sorts.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a config or schema that is not JSON: %v", err)) // both were read from JSON
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ReadCertificate reads a certificate from the values of its file.
func ReadCertificate(values map[string]any) (*Certificate, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	c := &Certificate{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return c, nil
}
