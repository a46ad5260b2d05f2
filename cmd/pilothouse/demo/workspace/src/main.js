import { config } from "./config.js";
import { Links } from "./links.js";
import { newServer } from "./server.js";

newServer(new Links(config), config).listen(config.port);
