package load

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config/document"
)

// Fingerprint returns a digest of files: those that Operators reads for Options.Files, and more. It changes if the
// content of one of them changes, or if one comes or goes. covered are their paths. Standard input is left out: it does
// not change.
func Fingerprint(files, more []string) (sum string, covered map[string]bool) {
	sources, errs := find(files)
	paths := make([]string, 0, len(sources)+len(more))
	for _, s := range sources {
		paths = append(paths, s.path)
	}
	digest := sha256.New()
	for _, err := range errs {
		fmt.Fprintf(digest, "%q\n", err.Error())
	}
	covered = map[string]bool{}
	for _, path := range append(paths, more...) {
		if path == document.StdinName || covered[path] {
			continue
		}
		covered[path] = true
		data, err := readFile(path)
		fmt.Fprintf(digest, "%q %d %v\n", path, len(data), err)
		digest.Write(data)
	}
	return hex.EncodeToString(digest.Sum(nil)), covered
}
