package yamltext

import (
	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// ReadsBack reports whether kubectl and Corollary parse a text as the value that it was written from: some values have
// no safe form in YAML.
func ReadsBack(text []byte, want map[string]any) bool {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return false
	}
	var have any
	err = utiljson.Unmarshal(asJSON, &have)
	return err == nil && equality.Semantic.DeepEqual(have, any(want))
}
