/** The page that shows what happens inside a model. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./image.css";
import { render } from "preact";
import { App } from "./app";
import { open } from "./page";
import { followAddress } from "./route";

followAddress();
void open().then(() => document.documentElement.classList.add("ready"));
render(<App />, document.getElementById("app")!);
