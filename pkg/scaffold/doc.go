// Package scaffold makes a first config from manifests as they would be applied by hand: the definition of the upstream
// kind, the config with a template for each manifest, its shared conventions, and a sample from which the templates
// give the manifests back. It reads what files tell and returns text; it writes no file and asks neither a person nor
// an API server. The flags of the init command say what is to be fixed.
package scaffold
