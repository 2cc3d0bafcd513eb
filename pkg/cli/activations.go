package cli

import (
	"github.com/spf13/pflag"
)

func bindIdentity(flags *pflag.FlagSet, identity *string) {
	flags.StringVar(identity, "activation-identity", "",
		"Identity of this cluster in files of kind Activation, in the place of theirs; different in each cluster")
}
