// Package config has the types of config files: plain structs, their enumerations, and the errors that are found in
// files.
//
// The rooms around it, each of which needs only those before it:
//
//	common, conversion, lock, query, random
//	          types of their own: of all kinds of files, of conversions, of activations, of rows, of generated values
//	tags      what the tags of the types' fields say
//	document  one YAML file: its values as kubectl reads them, their lines, and what is wrong with them
//	forms     how names and other texts must look, for validate and schema
//	decode    values into types, strictly
//	validate  what values must be, alone and together
//	schema    the JSON Schema of each kind of file
//	load      from names of files to checked configs: layers, overrides, conventions, defaults, conflicts
package config
