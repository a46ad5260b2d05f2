import { createServer } from "node:http";
import { isSlug } from "./slug.js";

export function newServer(links, { cacheSize }) {
  const recent = new Map(); // slug -> target: hot links skip the store

  function redirect(slug, response) {
    let target = recent.get(slug);
    if (target === undefined) {
      const link = links.get(slug);
      if (link === undefined) return reply(response, 404, { error: "no such link" });
      target = link.target;
      if (recent.size >= cacheSize) recent.delete(recent.keys().next().value);
      recent.set(slug, target);
    }
    response.writeHead(302, { location: target }).end();
  }

  async function create(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    let target;
    try {
      target = new URL(JSON.parse(body).target).href;
    } catch {
      return reply(response, 400, { error: "target must be a URL" });
    }
    reply(response, 201, links.add(target));
  }

  function remove(slug, response) {
    recent.delete(slug);
    if (links.remove(slug)) return response.writeHead(204).end();
    reply(response, 404, { error: "no such link" });
  }

  return createServer((request, response) => {
    const slug = request.url.slice(1);
    if (request.method === "POST" && slug === "links") return create(request, response);
    if (!isSlug(slug)) return reply(response, 404, { error: "no such link" });
    if (request.method === "GET") return redirect(slug, response);
    if (request.method === "DELETE") return remove(slug, response);
    reply(response, 405, { error: "GET or DELETE" });
  });
}

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
