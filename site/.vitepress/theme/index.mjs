// Without the theme's fonts: the system's are there already.
import { onContentUpdated, withBase } from "vitepress";
import { h, onMounted } from "vue";
import theme from "vitepress/theme-without-fonts";
import { followPage, reveal } from "./follow.mjs";
import { data as heroCode } from "./hero.data.mjs";
import "./style.css";

const heroIcon = () =>
  h("img", { class: "hero-icon", src: withBase("/icon.svg"), alt: "", width: 64, height: 64 });

export default {
  extends: theme,
  Layout: {
    setup() {
      onContentUpdated(followPage);
      onMounted(() => {
        window.addEventListener("hashchange", () => reveal());
        window.addEventListener("click", ({ target }) => {
          const link = target.closest?.("a[href^='#']");
          if (link) reveal(link.hash);
        });
      });
      return () =>
        h(theme.Layout, null, {
          "home-hero-info-before": heroIcon,
          "home-hero-image": () => h("div", { class: "vp-doc hero-code", innerHTML: heroCode }),
        });
    },
  },
};
