package docs_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestImageHasTheChartsTag: whoever builds the image as the page says, and installs the chart with nothing but its
// repository, has pods that find it.
func TestImageHasTheChartsTag(t *testing.T) {
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../charts/corollary/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"make image IMAGE=", "docker push "} {
		if line := command + "registry.example.com/corollary:" + chart.AppVersion + "\n"; !strings.Contains(read(t, "image.md"), line) {
			t.Errorf("image.md does not say %q", line)
		}
	}
}
