# ruff: noqa: RUF001
"""Phrases of boilerplate in six languages, to generate pages.

All of them are invented. ``{site}`` and ``{year}`` are placeholders.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    """The phrases of one language."""

    cookies: tuple[str, ...]
    agree: str
    share: tuple[str, ...]
    authors: tuple[str, ...]
    most_read: str
    related: str
    comments_head: str
    comments: tuple[str, ...]
    promotions: tuple[str, ...]
    advertisement: str
    advertisements: tuple[str, ...]
    updated: tuple[str, ...]
    menu: tuple[str, ...]
    notices: tuple[str, ...]
    footers: tuple[str, ...]


PHRASES = {
    "en": Phrases(
        cookies=(
            "We set cookies to count visits and to remember your settings. Choose what you allow.",
            "This site and its partners store data on your device. You can change your mind at any "
            "time in the settings at the foot of every page.",
        ),
        agree="Accept all",
        share=("Share", "Tweet", "Send by mail", "Print", "Save for later", "Copy link"),
        authors=(
            "Mara Quill writes about rivers, railways and the towns between them. She has been "
            "with {site} since {year}.",
            "About the author: Tom Hasker looks after the archive and edits the weekly letter.",
        ),
        most_read="Most read",
        related="More on this",
        comments_head="Comments",
        comments=(
            "I tried this last weekend and it went much better than I expected. Two small things "
            "did not work for me, but the rest was clear. Thank you for writing it down.",
            "Sorry, but I see it differently. The numbers in the second part cannot be right, and "
            "where they come from is not said. Has anybody checked them?",
            "Does it hold for older models too? Mine is from before the change, and the shop could "
            "not tell me.",
            "Great read, greetings from the north!",
            "Our neighbours had the same trouble for years until somebody at the council finally "
            "picked up the phone. It took one afternoon.",
        ),
        promotions=(
            "Our letter brings you the best of the week every Friday morning. Free, short, and you "
            "can leave whenever you like.",
            "Enjoying this? Become a member of {site} from three pounds a month and read without "
            "limits on all your devices.",
        ),
        advertisement="Advertisement",
        advertisements=(
            "Winter tyres fitted while you wait, book online today and save a fifth.",
            "New sofas, delivered to your door within ten days.",
        ),
        updated=("Updated 12 minutes ago", "Last changed on 3 May {year}, 14:05", "5 min read"),
        menu=("Home", "News", "Guides", "Events", "Downloads", "People", "Jobs", "Contact", "Help"),
        notices=(
            "You are reading about an old release. What is said here may no longer hold; the "
            "current version of {site} is linked at the top.",
            "{site} needs helpers: say what you would like to do, and somebody will write back.",
        ),
        footers=(
            "© {year} {site}. All rights reserved. {site} and its sign are trade marks of the "
            "{site} Trust; other names belong to whoever owns them.",
            "The people behind {site} give their time freely. Found something wrong? Tell us on "
            "the list or open a ticket, and one of us will see to it before long.",
            "What you find here is offered as it is and without any promise. Whoever uses this "
            "site accepts our terms and the way in which we treat personal data.",
            "Unless another licence is named, texts of {site} may be shared under the same terms. "
            "Built from source at midnight. Copyright {year}, the authors.",
            "{site} is a charity registered in Wales with the number 3381046, 7 Mill Lane, Cardiff."
            " Since {year} it has cared for places that everybody may visit.",
        ),
    ),
    "de": Phrases(
        cookies=(
            "Auf dieser Seite werden Cookies gesetzt, damit wir Besuche zählen und Ihre Auswahl "
            "behalten können. Entscheiden Sie, was Sie erlauben.",
        ),
        agree="Alles erlauben",
        share=("Teilen", "Weiterleiten", "Drucken", "Merken", "Link kopieren"),
        authors=(
            "Jule Brandt schreibt über Flüsse, Bahnen und die Orte dazwischen. Seit {year} gehört "
            "sie zur Redaktion von {site}.",
        ),
        most_read="Meistgelesen",
        related="Mehr zum Thema",
        comments_head="Kommentare",
        comments=(
            "Das habe ich am Wochenende ausprobiert, und es ging besser als gedacht. Zwei "
            "Kleinigkeiten klappten nicht, alles andere war gut erklärt. Vielen Dank dafür!",
            "Da bin ich anderer Meinung. Die Zahlen im zweiten Teil können so nicht stimmen, und "
            "woher sie kommen, steht nirgends. Hat das jemand nachgerechnet?",
            "Gilt das auch für ältere Geräte? Im Laden konnte man es mir nicht sagen.",
        ),
        promotions=(
            "Unser Brief bringt Ihnen jeden Freitag das Beste der Woche, kostenlos und jederzeit "
            "kündbar.",
        ),
        advertisement="Anzeige",
        advertisements=("Winterreifen gleich montiert: heute buchen und ein Fünftel sparen.",),
        updated=("Vor 12 Minuten aktualisiert", "Stand: 3. Mai {year}, 14:05 Uhr"),
        menu=("Start", "Politik", "Wirtschaft", "Sport", "Kultur", "Wissen", "Reise", "Kontakt"),
        notices=("{site} zieht um. Bitte ändern Sie Ihre Lesezeichen, die alten Seiten bleiben.",),
        footers=(
            "© {year} {site} GmbH. Alle Rechte vorbehalten. Für Inhalte, auf die wir verweisen, "
            "stehen deren Anbieter ein; beim Setzen des Verweises war nichts zu beanstanden.",
            "Herausgegeben vom Verein {site} in Kassel. Wir arbeiten ehrenamtlich und freuen uns "
            "über Hinweise auf Fehler, die wir so bald wie möglich beheben.",
        ),
    ),
    "fr": Phrases(
        cookies=(
            "Des cookies nous aident à compter les visites et à retenir vos préférences. Dites ce "
            "que vous acceptez.",
        ),
        agree="Tout accepter",
        share=("Partager", "Envoyer", "Imprimer", "Enregistrer", "Copier le lien"),
        authors=(
            "Lise Carrel écrit sur les rivières, les trains et les villes qu'ils traversent. Elle "
            "a rejoint {site} en {year}.",
        ),
        most_read="Les plus lus",
        related="À lire aussi",
        comments_head="Commentaires",
        comments=(
            "J'ai essayé ce week-end et tout s'est mieux passé que prévu. Deux détails n'ont pas "
            "marché, le reste était limpide. Merci de l'avoir écrit.",
            "Je ne suis pas d'accord. Les chiffres de la seconde partie semblent faux et rien ne "
            "dit d'où ils viennent.",
        ),
        promotions=(
            "Notre lettre vous apporte chaque vendredi le meilleur de la semaine, sans frais et "
            "sans engagement.",
        ),
        advertisement="Publicité",
        advertisements=("Pneus d'hiver montés sur place, réservez aujourd'hui.",),
        updated=("Mis à jour il y a 12 minutes", "Modifié le 3 mai {year} à 14 h 05"),
        menu=("Accueil", "Actualités", "Dossiers", "Agenda", "Culture", "Sport", "Contact"),
        notices=("{site} change d'adresse, pensez à mettre à jour vos favoris et vos liens.",),
        footers=(
            "{site} {year}, tous droits réservés. Les textes sont donnés pour information et ne "
            "sauraient engager l'association ; pour les reproduire, demandez-nous d'abord.",
            "Édité à Rennes par l'association {site}. La fréquentation est mesurée sans cookie et "
            "sans nom, afin d'améliorer ce qui vous est proposé.",
        ),
    ),
    "es": Phrases(
        cookies=(
            "Usamos cookies para contar las visitas y recordar sus preferencias. Elija lo que "
            "permite.",
        ),
        agree="Aceptar todo",
        share=("Compartir", "Enviar", "Imprimir", "Guardar", "Copiar enlace"),
        authors=(
            "Inés Robledo escribe sobre ríos, trenes y los pueblos que hay entre ellos. Está en "
            "{site} desde {year}.",
        ),
        most_read="Lo más leído",
        related="Le puede interesar",
        comments_head="Comentarios",
        comments=(
            "Lo probé el fin de semana y salió mejor de lo que pensaba. Dos detalles no "
            "funcionaron, lo demás estaba muy claro. Gracias por contarlo.",
            "No estoy de acuerdo. Las cifras de la segunda parte no pueden ser correctas y no se "
            "dice de dónde salen.",
        ),
        promotions=("Cada viernes le enviamos lo mejor de la semana, gratis y sin compromiso.",),
        advertisement="Publicidad",
        advertisements=("Neumáticos de invierno montados al momento, reserve hoy.",),
        updated=("Actualizado hace 12 minutos", "Última revisión: 3 de mayo de {year}"),
        menu=("Inicio", "Noticias", "Guías", "Agenda", "Cultura", "Deportes", "Contacto"),
        notices=("{site} cambia de dirección: actualice sus marcadores y sus enlaces.",),
        footers=(
            "© {year} {site}. Todos los derechos reservados. Lo publicado aquí sirve solo para "
            "informar y puede cambiar; si tiene dudas, llame a nuestra oficina de Burgos.",
        ),
    ),
    "ru": Phrases(
        cookies=("Мы используем файлы cookie, чтобы считать посещения и помнить ваши настройки.",),
        agree="Разрешить все",
        share=("Поделиться", "Отправить", "Печать", "Сохранить"),
        authors=("Вера Лугова пишет о реках, поездах и городах. С {year} года работает в {site}.",),
        most_read="Самое читаемое",
        related="Читайте также",
        comments_head="Комментарии",
        comments=(
            "Попробовал в выходные, получилось лучше, чем я думал. Две мелочи не сработали, "
            "остальное описано понятно. Спасибо!",
            "Не согласен. Цифры во второй части неверны, и откуда они взяты, не сказано.",
        ),
        promotions=("Каждую пятницу мы присылаем лучшее за неделю, бесплатно и коротко.",),
        advertisement="Реклама",
        advertisements=("Зимние шины с установкой, запишитесь сегодня.",),
        updated=("Обновлено 12 минут назад", "Изменено 3 мая {year} года"),
        menu=("Главная", "Новости", "Статьи", "Культура", "Спорт", "Контакты"),
        notices=("{site} переехал: обновите, пожалуйста, закладки и ссылки.",),
        footers=(
            "{site}, {year}. Все права защищены. Перепечатка возможна с разрешения редакции и со "
            "ссылкой на источник; за чужие мнения редакция не отвечает.",
        ),
    ),
    "zh": Phrases(
        cookies=("本站使用 Cookie 统计访问量并记住您的设置，请选择您允许的内容。",),
        agree="全部接受",
        share=("分享", "打印", "收藏", "复制链接"),
        authors=("林若溪写河流、铁路和沿途的小城，{year} 年加入 {site}。",),
        most_read="热门文章",
        related="相关阅读",
        comments_head="评论",
        comments=(
            "周末照着试了一次，比想象中顺利，只有两处小地方没成功，其余写得很清楚，谢谢分享。",
            "我不太同意，第二部分的数字应该有误，也没有说明出处。",
        ),
        promotions=("每周五为您送上一周精选，免费订阅，随时可以退订。",),
        advertisement="广告",
        advertisements=("冬季轮胎现场安装，今天预约更优惠。",),
        updated=("12 分钟前更新", "最后修改于 {year} 年 5 月 3 日"),
        menu=("首页", "新闻", "专题", "文化", "体育", "联系我们"),
        notices=("{site} 已迁移到新的地址，请更新您的书签和链接。",),
        footers=("版权所有 © {year} {site}。未经许可不得转载，本站内容仅供参考，不作为任何建议。",),
    ),
}
SITES = (
    "Alderbrook", "Brightwater", "Cedarline", "Duskfield", "Elmhaven", "Foxmoor", "Glenrock",
    "Harborview", "Ironbridge", "Larkspur", "Mosswood", "Northgate", "Oakhurst", "Redfern",
)  # fmt: skip
