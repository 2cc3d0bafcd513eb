// Package forms says how names, keys and other texts of a config must look.
package forms
