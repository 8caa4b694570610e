/** A part that scrolls by itself. It is a stop for the keyboard only while there is something to scroll. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface Props {
  label: string;
  class?: string;
  children: ComponentChildren;
}

export function Scroll({ label, class: name = "", children }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  useLayoutEffect(() => {
    const box = element.current!;
    const measure = () => setWide(box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1);
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    if (box.firstElementChild) observer.observe(box.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={element} class={`scroll ${name}`} role="group" aria-label={`${label}, scrolls`} tabIndex={wide ? 0 : undefined}>
      {children}
    </div>
  );
}
