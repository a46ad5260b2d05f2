// Package pi holds the Pi extension: a Pi package in TypeScript without a build step,
// which Pi loads as it is. `pilothouse install` puts it where Pi looks for extensions.
package pi

import (
	"embed"
	"io/fs"
)

//go:embed package.json *.ts skills
var files embed.FS

// Files are the files of the extension, as they are installed.
func Files() fs.FS { return files }
