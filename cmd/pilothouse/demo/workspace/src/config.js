// The settings of the service. Each has a default and a variable of its own.
export const config = Object.freeze({
  port: Number(process.env.QUAY_PORT ?? 8080),
  dataFile: process.env.QUAY_DATA ?? "data/links.json",
  slugLength: Number(process.env.QUAY_SLUG_LENGTH ?? 6),
  cacheSize: Number(process.env.QUAY_CACHE_SIZE ?? 500),
});
