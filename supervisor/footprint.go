package supervisor

import cmap "github.com/orcaman/concurrent-map"

// The actor library finds actors by name in 1,024 maps, each made of this many parts
// with a lock of its own. At its default of 32 an actor system is 33,000 maps, which
// cost a short command a quarter of its time; 1,024 locks are enough for as many
// actors as ever live here. It has to be set before the first actor system is made
// and stay as it is, because the maps compute with it at every access.
func init() { cmap.SHARD_COUNT = 1 }
